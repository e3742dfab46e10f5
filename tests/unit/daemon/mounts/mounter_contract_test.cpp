// The contract of every Mounter: tested with the fake, and with the real one on loop devices.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "daemon/mounts/filesystems/block_device.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "tests/support/fake_mounter.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

// The parts of a host used by the contract.
class World {
 public:
  virtual ~World() = default;
  virtual Mounter& mounter() = 0;
  virtual std::string make_ext4() = 0;  // returns a device
  virtual std::filesystem::path mount_point(const std::string& name) = 0;
  virtual void put_file_into(const std::filesystem::path& mount_point) = 0;
  virtual void keep_busy(const std::filesystem::path& mounted) = 0;
  virtual void release() = 0;
};

class FakeWorld final : public World {
 public:
  Mounter& mounter() override { return mounter_; }
  std::string make_ext4() override {
    const std::string name = "/dev/fake" + std::to_string(mounter_.devices.size());
    mounter_.devices[name] = 1000 + mounter_.devices.size();
    return name;
  }
  std::filesystem::path mount_point(const std::string& name) override { return "/fake/" + name; }
  void put_file_into(const std::filesystem::path& mount_point) override {
    mounter_.occupied.insert(mount_point);
  }
  void keep_busy(const std::filesystem::path& mounted) override {
    mounter_.users[mounted] = "test (pid " + std::to_string(::getpid()) + ", open file)";
  }
  void release() override { mounter_.users.clear(); }

 private:
  test::FakeMounter mounter_;
};

class RealWorld final : public World {
 public:
  ~RealWorld() override {
    release();
    for (const auto& point : points_) std::ignore = mounter_.unmount(point, Unmount::Plain);
  }
  Mounter& mounter() override { return mounter_; }
  std::string make_ext4() override {
    const auto image = folder_ / ("image" + std::to_string(devices_.size()));
    test::make_image(image, 16 << 20, {"mkfs.ext4", "-q"});
    devices_.emplace_back(image);
    return devices_.back().path();
  }
  std::filesystem::path mount_point(const std::string& name) override {
    points_.push_back(folder_ / name);
    return points_.back();
  }
  void put_file_into(const std::filesystem::path& mount_point) override {
    std::filesystem::create_directories(mount_point);
    std::ofstream(mount_point / "file") << "x";
  }
  void keep_busy(const std::filesystem::path& mounted) override {
    file_.reset(::open(mounted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void release() override { file_.reset(); }

 private:
  test::TempFolder folder_;
  LibmountMounter mounter_;
  std::vector<test::LoopDevice> devices_;
  std::vector<std::filesystem::path> points_;
  UniqueFd file_;
};

class MounterContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "fake") {
      world_ = std::make_unique<FakeWorld>();
    } else if (const std::string why = test::why_no_loop_mounts(); !why.empty()) {
      SPARK_SKIP("the real Mounter: " + why);
    } else {
      world_ = std::make_unique<RealWorld>();
    }
  }
  Result<Change> mount(const std::string& source, const std::filesystem::path& target,
                       bool read_only = true) {
    return world_->mounter().mount({source, target, "ext4", read_only, {"noatime"}});
  }
  std::unique_ptr<World> world_;
};

INSTANTIATE_TEST_SUITE_P(Both, MounterContract, testing::Values("fake", "real"),
                         [](const auto& info) { return info.param; });

#define EXPECT_CHANGE(wanted, expression)              \
  do {                                                 \
    const auto outcome = (expression);                 \
    ASSERT_TRUE(outcome) << outcome.error().message(); \
    EXPECT_EQ(*outcome, wanted);                       \
  } while (false)

TEST_P(MounterContract, MountAndUnmountCanBeRepeated) {
  const std::string device = world_->make_ext4();
  const auto point = world_->mount_point("point/made/for/it");
  EXPECT_CHANGE(Change::Done, mount(device, point));
  EXPECT_CHANGE(Change::AlreadyThere, mount(device, point));
  EXPECT_CHANGE(Change::Done, world_->mounter().unmount(point, Unmount::Plain));
  EXPECT_CHANGE(Change::AlreadyThere, world_->mounter().unmount(point, Unmount::Plain));
  EXPECT_CHANGE(Change::Done, mount(device, point));
}

TEST_P(MounterContract, AMountPointThatIsNotEmptyIsRefused) {
  const std::string device = world_->make_ext4();
  const auto point = world_->mount_point("point");
  world_->put_file_into(point);
  const auto outcome = mount(device, point);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr("not empty"));
}

TEST_P(MounterContract, AMountPointInUseIsRefusedAndItsDeviceIsNamed) {
  const std::string one = world_->make_ext4(), two = world_->make_ext4();
  const auto point = world_->mount_point("point");
  EXPECT_CHANGE(Change::Done, mount(one, point));
  const auto outcome = mount(two, point);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr(one));
}

TEST_P(MounterContract, OneDeviceIsNotMountedBothReadOnlyAndWritable) {
  const std::string device = world_->make_ext4();
  const auto here = world_->mount_point("here"), there = world_->mount_point("there");
  EXPECT_CHANGE(Change::Done, mount(device, here, false));
  for (const auto& point : {here, there}) {
    const auto outcome = mount(device, point, true);
    ASSERT_FALSE(outcome) << point;
    EXPECT_EQ(outcome.error().kind, Errc::Refused);
  }
}

TEST_P(MounterContract, AMissingDeviceIsNotFound) {
  const auto outcome = mount("/dev/spark-stage-nothing", world_->mount_point("point"));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::NotFound);
}

TEST_P(MounterContract, UnmountingABusyMountIsRefusedNamingItsUsersButDetachingWorks) {
  const std::string device = world_->make_ext4();
  const auto point = world_->mount_point("point");
  EXPECT_CHANGE(Change::Done, mount(device, point));
  world_->keep_busy(point);
  const auto outcome = world_->mounter().unmount(point, Unmount::Plain);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Errc::Refused);
  EXPECT_THAT(outcome.error().what, HasSubstr("pid " + std::to_string(::getpid()) + ", open file"));
  EXPECT_CHANGE(Change::Done, world_->mounter().unmount(point, Unmount::Detach));
  EXPECT_CHANGE(Change::AlreadyThere, world_->mounter().unmount(point, Unmount::Detach));
  world_->release();
}

}  // namespace
}  // namespace spark::mounts
