#include "fleet/serve/listeners.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/local_port.hpp"

using namespace spark;
using namespace spark::fleet;
using testing::HasSubstr;

namespace {

const Endpoint kMissing{"192.0.2.77", 7789};  // for documentation: no host has it
constexpr SteadyTime kListening{std::chrono::hours(1)};

Endpoint here() {
  return {"127.0.0.1", spark::test::LocalPort().portal.port};
}

TEST(Listeners, AMissingAddressKeepsNoneOfTheOthersFromBeingServed) {
  for (const bool is_first : {true, false}) {
    const Endpoint there = here();
    Listeners listeners(is_first ? std::vector{kMissing, there} : std::vector{there, kMissing});
    const auto opened = listeners.open();
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(listeners.sockets().size(), 1u);
    EXPECT_TRUE(connect_to(there, std::chrono::seconds(60)));
    EXPECT_THAT(listeners.trouble(), HasSubstr("192.0.2.77:7789"));
    listeners.open_missing(kListening);
    EXPECT_EQ(listeners.sockets().size(), 1u);
    EXPECT_THAT(listeners.trouble(), HasSubstr("192.0.2.77:7789"));
  }
}

TEST(Listeners, WithoutAnyAddressNothingIsServed) {
  Listeners listeners({kMissing});
  const auto opened = listeners.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Errc::Unavailable);
}

TEST(Listeners, AnAddressInUseIsAnError) {
  const Endpoint used = here(), other = here();
  const auto user = listen_on(used).value();
  Listeners listeners({other, used});
  EXPECT_FALSE(listeners.open());
}

TEST(Listeners, ServedEverywhereIsNoTrouble) {
  Listeners listeners({here()});
  ASSERT_TRUE(listeners.open());
  EXPECT_EQ(listeners.trouble(), "");
}

TEST(Listeners, AClosedAddressIsFreeAlsoWhileAnotherDescriptorOfItIsOpen) {
  const Endpoint at = here();
  Listeners listeners({at});
  ASSERT_TRUE(listeners.open());
  const UniqueFd other(::dup(listeners.sockets().front().get()));
  listeners.close();
  const auto again = listen_on(at);
  EXPECT_TRUE(again) << again.error().message();
}

}  // namespace
