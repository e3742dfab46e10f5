#include "fleet/link/measure.hpp"

#include <gtest/gtest.h>

#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;
using spark::fleet::test::FleetHost;

namespace {

class Measure : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  FleetHost host_{key_, "nqn.peer"};
  const std::shared_ptr<Security> security_ = Security::make(key_, "nqn.this").value();
  const Endpoint peer_ = host_.address().endpoints.front();

  static MeasureLimits limits() {
    MeasureLimits some;
    some.time = 500ms;
    some.connections = 2;
    some.silence = 10s;  // of a busy computer
    return some;
  }
};

TEST_F(Measure, ThePeerDescribesItsEndOfTheConnection) {
  const auto end = look_at_peer(security_, peer_, 10s);
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->interface, "lo");
  EXPECT_EQ(end->limit, 0u);
}

TEST_F(Measure, DataMovesInBothDirections) {
  MeasureLimits patient = limits();
  patient.time = 60s;  // a busy computer moves nothing for a while; the bytes end it
  patient.bytes = 1 << 20;
  for (const Way way : {Way::From, Way::To}) {
    const WayRate rate = measure(security_, peer_, way, patient);
    ASSERT_FALSE(rate.error) << rate.error->message();
    EXPECT_GT(rate.bytes_per_second, 0);
    EXPECT_GE(rate.own_busy, 0);
    EXPECT_LE(rate.peer_busy, 1);
  }
}

TEST_F(Measure, NoMoreThanTheBytesOfTheLimitAreMoved) {
  MeasureLimits few = limits();
  few.time = 60s;
  few.bytes = 1 << 20;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(measure(security_, peer_, Way::From, few).error);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

TEST_F(Measure, TheBurstsTakeTheirShareOfTheTime) {
  MeasureLimits few = limits();
  few.time = 60s;
  few.bytes = 1 << 20;
  for (const Way way : {Way::From, Way::To}) {
    const WayRate rate = measure(security_, peer_, way, few);
    ASSERT_FALSE(rate.error) << rate.error->message();
    EXPECT_LE(rate.share, kShareOfLink);
    EXPECT_GT(rate.share, 0);
    EXPECT_GE(rate.bytes, few.bytes);
  }
}

TEST_F(Measure, ALimitedHostSendsNoFasterThanItsLimit) {
  MeasureLimits slow = limits();
  slow.rate = 2'000'000;
  const WayRate rate = measure(security_, peer_, Way::To, slow);
  ASSERT_FALSE(rate.error) << rate.error->message();
  EXPECT_EQ(rate.limit, slow.rate);
  EXPECT_LT(rate.bytes_per_second, 4'000'000);
}

TEST_F(Measure, AnotherKeyIsDenied) {
  const auto other = Security::make(new_key().value(), "nqn.other").value();
  const auto end = look_at_peer(other, peer_, 10s);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, Errc::Denied) << end.error().message();
  EXPECT_TRUE(measure(other, peer_, Way::From, limits()).error);
}

TEST_F(Measure, ASilentPortIsReportedAfterThePatience) {
  const Endpoint silent{"127.0.0.1", spark::test::LocalPort().portal.port};
  const UniqueFd listening = listen_on(silent).value();
  const auto end = look_at_peer(security_, silent, 100ms);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, Errc::TimedOut) << end.error().message();
}

TEST(LinkEnd, PassesThroughJson) {
  LinkEnd end;
  end.interface = "fast0";
  end.megabits = 200'000;
  end.mtu = 9000;
  end.received = 5;
  end.sent = 7;
  end.limit = 9;
  Nic& card = end.cards.emplace_back();
  card.name = "fast0";
  card.megabits = 200'000;
  card.networks = {"10.0.0.2"};
  end.load = {3s, {1, 2}};
  end.clock = 11s;
  const LinkEnd same = link_end_from(to_json(end));
  EXPECT_EQ(to_json(same), to_json(end));
  EXPECT_EQ(same.load.thread, 3s);
  EXPECT_EQ(same.clock, 11s);
  EXPECT_EQ(link_end_from({}).megabits, 0u);
}

}  // namespace
