#include "daemon/sight.hpp"

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

TEST(Sight, LooksOnceAMomentAndAtOnceAfterSomebodyActed) {
  test::FakeSysfs sysfs;
  StoppedClock clock;
  Sight sight(clock, sysfs.root());
  EXPECT_TRUE(sight.controllers().value().empty());
  sysfs.add_controller(test::tcp_controller("nvme1", "raid5-data"));
  EXPECT_TRUE(sight.controllers().value().empty());
  sight.forget();
  EXPECT_EQ(sight.controllers().value().size(), 1U);
  sysfs.add_controller(test::tcp_controller("nvme2", "raid5-data"));
  clock.now += std::chrono::seconds(1);
  EXPECT_EQ(sight.controllers().value().size(), 2U);
}

}  // namespace
}  // namespace spark
