#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <fstream>

#include "daemon/mounts/shutdown.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

class NfsShutdownTest : public testing::Test {
 protected:
  NfsShutdownTest() { mount_.device_number = makedev(0, 55); }
  const test::TempFolder folder_;
  const SystemRoot root_{folder_.path()};
  const std::filesystem::path knob_ = folder_ / "sys/fs/nfs/0:55/shutdown";
  Mount mount_;
};

TEST_F(NfsShutdownTest, TheMountsOwnNfsConnectionIsShutDown) {
  std::filesystem::create_directories(knob_.parent_path());
  std::ofstream(knob_) << "0";
  EXPECT_TRUE(shut_down_nfs(root_, mount_));
  EXPECT_EQ(read_file(knob_).value(), "1");
}

TEST_F(NfsShutdownTest, AKernelWithoutTheShutdownFileIsAnError) {
  EXPECT_FALSE(shut_down_nfs(root_, mount_));
  EXPECT_FALSE(std::filesystem::exists(knob_));
}

}  // namespace
}  // namespace spark::mounts
