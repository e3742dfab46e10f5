#include "nvmetcp/sysfs/timers.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::seconds;

struct TimersTest : testing::Test {
  TimersTest() {
    sysfs.add_controller(controller);
    show("2", "off", "off", "5");
  }
  void show(const char* delay, const char* loss, const char* fast, const char* kato) {
    sysfs.write("sys/class/nvme/nvme1/reconnect_delay", delay);
    sysfs.write("sys/class/nvme/nvme1/ctrl_loss_tmo", loss);
    sysfs.write("sys/class/nvme/nvme1/fast_io_fail_tmo", fast);
    sysfs.write("sys/class/nvme/nvme1/kato", kato);
  }
  std::vector<std::string> found() { return differences(sysfs.root(), controller, asked); }

  test::FakeSysfs sysfs;
  Controller controller = test::tcp_controller("nvme1", "s");
  ConnectOptions asked;
};

TEST_F(TimersTest, MatchingSettingsGiveNoDifference) {
  EXPECT_TRUE(found().empty());
}

// The kernel stores ctrl_loss_tmo as a number of attempts.
TEST_F(TimersTest, ControllerLossIsComparedAsTheKernelRoundsIt) {
  asked.controller_loss = seconds(5);
  show("2", "6", "off", "5");
  EXPECT_TRUE(found().empty());
  asked.controller_loss = seconds(0);
  show("2", "0", "off", "5");
  EXPECT_TRUE(found().empty());
}

TEST_F(TimersTest, EverySettingThatDiffersIsNamedWithBothValues) {
  asked.fast_fail = seconds(30);
  asked.interface = "eth7";
  show("10", "600", "off", "30");
  EXPECT_EQ(found(), (std::vector<std::string>{"reconnect_delay is 10, not 2",
                                               "controller_loss is 600, not off", "fast_fail is off, not 30",
                                               "keep_alive is 30, not 5", "interface is not set, not eth7"}));
}

TEST_F(TimersTest, AnAttributeThatTheKernelLacksIsNotADifference) {
  asked.fast_fail = seconds(30);
  sysfs.remove("sys/class/nvme/nvme1/fast_io_fail_tmo");
  EXPECT_TRUE(found().empty());
}

TEST_F(TimersTest, TheIoPolicyIsThatOfTheControllersSubsystem) {
  asked.io_policy = "round-robin";
  EXPECT_EQ(found(),
            (std::vector<std::string>{"io_policy is unknown to this kernel (native multipath is off)"}));
  sysfs.write("sys/class/nvme-subsystem/nvme-subsys0/iopolicy", "numa");
  sysfs.write("sys/class/nvme-subsystem/nvme-subsys1/iopolicy", "numa");
  sysfs.write("sys/class/nvme-subsystem/nvme-subsys1/nvme1/state", "live");
  EXPECT_EQ(found(), (std::vector<std::string>{"io_policy is numa, not round-robin"}));
  set_timers(sysfs.root(), controller, asked);
  EXPECT_TRUE(sysfs.read("sys/class/nvme-subsystem/nvme-subsys1/iopolicy").starts_with("round-robin"));
  EXPECT_EQ(sysfs.read("sys/class/nvme-subsystem/nvme-subsys0/iopolicy"), "numa");
  asked.io_policy.clear();
  show("2", "off", "off", "5");
  EXPECT_TRUE(found().empty()) << "not asked for";
}

TEST_F(TimersTest, TimersAreSetOnALiveController) {
  show("1", "2", "3", "5");
  set_timers(sysfs.root(), controller, asked);
  EXPECT_TRUE(sysfs.read("sys/class/nvme/nvme1/reconnect_delay").starts_with("2"));
  EXPECT_TRUE(sysfs.read("sys/class/nvme/nvme1/ctrl_loss_tmo").starts_with("-1"));
  EXPECT_TRUE(sysfs.read("sys/class/nvme/nvme1/fast_io_fail_tmo").starts_with("-1"));
}

}  // namespace
}  // namespace spark::nvmetcp
