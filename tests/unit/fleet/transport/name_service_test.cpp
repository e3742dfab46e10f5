#include "fleet/transport/name_service.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <memory>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

using Addresses = std::vector<std::string>;
using FoundNames = std::map<std::string, Addresses>;

TEST(ResolveAll, FindsEachNameThatHasAddresses) {
  const auto resolve = [](const std::string& name) -> Result<Addresses> {
    if (name == "none") return fail(Errc::Unavailable, "no such name");
    return Addresses{name + ".1", name + ".2"};
  };
  EXPECT_EQ(resolve_all({"a", "none", "b"}, 1h, resolve),
            (FoundNames{{"a", {"a.1", "a.2"}}, {"b", {"b.1", "b.2"}}}));
  EXPECT_EQ(resolve_all({}, 1h, resolve), FoundNames{});
  const std::vector<std::string> many(100, "a");
  EXPECT_EQ(resolve_all(many, 1h, resolve).size(), 1u);
}

TEST(ResolveAll, ANameServiceThatDoesNotAnswerIsWaitedForOnceForAllNames) {
  const auto may_end = std::make_shared<std::latch>(1);
  const auto resolve = [may_end](const std::string& name) -> Result<Addresses> {
    if (name.starts_with("away")) may_end->wait();
    return Addresses{"10.0.0.1"};
  };
  const auto found = resolve_all({"away1", "away2", "away3"}, 100ms, resolve);
  may_end->count_down();
  EXPECT_EQ(found, FoundNames{}) << "it returned before any of them was found";
}

}  // namespace
