#include "nvmetcp/sysfs/rescan.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

struct RescanTest : testing::Test {
  RescanTest() {
    sysfs.add_controller(test::tcp_controller("nvme1", "s"));
    sysfs.write(kFile, "");
  }
  static constexpr char kFile[] = "sys/class/nvme/nvme1/rescan_controller";
  test::FakeSysfs sysfs;
};

TEST_F(RescanTest, TheKernelIsAskedToRescan) {
  EXPECT_TRUE(rescan_namespaces(sysfs.root(), "nvme1", "s"));
  EXPECT_TRUE(sysfs.read(kFile).starts_with("1"));
}

TEST_F(RescanTest, AConnectionToAnotherSubsystemIsNotRescanned) {
  EXPECT_EQ(rescan_namespaces(sysfs.root(), "nvme1", "other").error().kind, Errc::NotFound);
  EXPECT_EQ(rescan_namespaces(sysfs.root(), "nvme2", "s").error().kind, Errc::NotFound);
  EXPECT_EQ(sysfs.read(kFile), "");
}

TEST_F(RescanTest, AKernelWithoutRescanIsAnError) {
  sysfs.remove(kFile);
  EXPECT_FALSE(rescan_namespaces(sysfs.root(), "nvme1", "s"));
}

}  // namespace
}  // namespace spark::nvmetcp
