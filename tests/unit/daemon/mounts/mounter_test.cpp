// What mount() and unmount() promise, on loop devices.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "daemon/mounts/libmount_mounter.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

class MounterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_loop_mounts(); !why.empty()) SPARK_SKIP("mounts: " + why);
  }
  void TearDown() override {
    file_.reset();
    for (const auto& point : points_) std::ignore = unmount(point, Unmount::Plain);
  }
  std::string make_ext4() {
    const auto image = folder_ / ("image" + std::to_string(devices_.size()));
    test::make_image(image, 16 << 20, {"mkfs.ext4", "-q"});
    devices_.emplace_back(image);
    return devices_.back().path();
  }
  std::filesystem::path mount_point(const std::string& name) {
    points_.push_back(folder_ / name);
    return points_.back();
  }
  static Result<Change> mount(const std::string& source, const std::filesystem::path& target,
                              bool read_only = true) {
    return mounts::mount({source, target, "ext4", read_only, {"noatime"}});
  }

  test::TempFolder folder_;
  std::vector<test::LoopDevice> devices_;
  std::vector<std::filesystem::path> points_;
  UniqueFd file_;  // keeps a mount busy
};

#define EXPECT_CHANGE(wanted, expression)              \
  do {                                                 \
    const auto outcome = (expression);                 \
    ASSERT_TRUE(outcome) << outcome.error().message(); \
    EXPECT_EQ(*outcome, wanted);                       \
  } while (false)

TEST_F(MounterTest, MountAndUnmountCanBeRepeated) {
  const std::string device = make_ext4();
  const auto point = mount_point("point/made/for/it");
  EXPECT_CHANGE(Change::Done, mount(device, point));
  EXPECT_CHANGE(Change::AlreadyThere, mount(device, point));
  EXPECT_CHANGE(Change::Done, unmount(point, Unmount::Plain));
  EXPECT_CHANGE(Change::AlreadyThere, unmount(point, Unmount::Plain));
  EXPECT_CHANGE(Change::Done, mount(device, point));
}

TEST_F(MounterTest, AMountPointThatIsNotEmptyIsRefused) {
  const std::string device = make_ext4();
  const auto point = mount_point("point");
  std::filesystem::create_directories(point);
  std::ofstream(point / "file") << "x";
  const auto outcome = mount(device, point);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr("not empty"));
}

TEST_F(MounterTest, AMountPointInUseIsRefusedAndItsDeviceIsNamed) {
  const std::string one = make_ext4(), two = make_ext4();
  const auto point = mount_point("point");
  EXPECT_CHANGE(Change::Done, mount(one, point));
  const auto outcome = mount(two, point);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr(one));
}

TEST_F(MounterTest, OneDeviceIsNotMountedBothReadOnlyAndWritable) {
  const std::string device = make_ext4();
  const auto here = mount_point("here"), there = mount_point("there");
  EXPECT_CHANGE(Change::Done, mount(device, here, false));
  for (const auto& point : {here, there}) {
    const auto outcome = mount(device, point, true);
    ASSERT_FALSE(outcome) << point;
    EXPECT_EQ(outcome.error().kind, Errc::Refused);
  }
}

TEST_F(MounterTest, AMissingDeviceIsNotFound) {
  const auto outcome = mount("/dev/spark-stage-nothing", mount_point("point"));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::NotFound);
}

TEST_F(MounterTest, UnmountingABusyMountIsRefusedNamingItsUsersButDetachingWorks) {
  const std::string device = make_ext4();
  const auto point = mount_point("point");
  EXPECT_CHANGE(Change::Done, mount(device, point));
  file_.reset(::open(point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto outcome = unmount(point, Unmount::Plain);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr("pid " + std::to_string(::getpid()) + ", open file"));
  EXPECT_CHANGE(Change::Done, unmount(point, Unmount::Detach));
  EXPECT_CHANGE(Change::AlreadyThere, unmount(point, Unmount::Detach));
}

}  // namespace
}  // namespace spark::mounts
