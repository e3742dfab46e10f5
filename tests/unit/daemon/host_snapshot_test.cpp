#include "daemon/host_snapshot.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark {
namespace {

class StoppedClock final : public Clock {
 public:
  WallTime wall() const override { return {}; }
  SteadyTime steady() const override { return now; }
  SteadyTime now{std::chrono::hours(1)};
};

TEST(HostSnapshot, IsReusedUntilItExpiresOrIsForgotten) {
  test::FakeSysfs sysfs;
  StoppedClock clock;
  HostSnapshot snapshot(clock, sysfs.root());
  EXPECT_TRUE(snapshot.controllers().value().empty());
  sysfs.add_controller(test::tcp_controller("nvme1", "raid5-data"));
  EXPECT_TRUE(snapshot.controllers().value().empty());
  snapshot.forget();
  EXPECT_EQ(snapshot.controllers().value().size(), 1U);
  sysfs.add_controller(test::tcp_controller("nvme2", "raid5-data"));
  clock.now += std::chrono::seconds(1);
  EXPECT_EQ(snapshot.controllers().value().size(), 2U);
}

}  // namespace
}  // namespace spark
