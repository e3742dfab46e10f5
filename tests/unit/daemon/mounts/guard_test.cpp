// Protection of an unmounted mount point: on a loop device with ext4, as root.
#include "daemon/mounts/guard.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "base/file.hpp"
#include "daemon/mounts/mount_point.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class GuardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_loop_mounts(); !why.empty()) SPARK_SKIP(why);
    test::make_image(folder_ / "image", 16 << 20, {"mkfs.ext4", "-q"});
    device_.emplace(folder_ / "image");
    fs::create_directory(disk());
    ASSERT_EQ(::mount(device_->path().c_str(), disk().c_str(), "ext4", 0, ""), 0);
    fs::create_directories(disk() / "state");
  }
  void TearDown() override {
    for (int mounts = 0; mounts < 10 && ::umount2(point().c_str(), MNT_DETACH) == 0; ++mounts) {
    }
    ::umount2(disk().c_str(), MNT_DETACH);
  }

  fs::path disk() const { return folder_ / "disk"; }
  fs::path point() const { return disk() / "mnt/data"; }
  Result<Guard> guard(bool is_in_use = false) const {
    return guard_mount_point({point(), disk() / "state/mount-points", is_in_use});
  }
  Result<> remove_all_but(const std::set<fs::path>& keep) const {
    return remove_guards(disk() / "state/mount-points", keep);
  }
  void cover(const char* type = "tmpfs") const {
    ASSERT_EQ(::mount("none", point().c_str(), type, 0, ""), 0);
  }
  void uncover() const { ASSERT_EQ(::umount(point().c_str()), 0); }
  void put_file(const std::string& name) const {
    fs::create_directories(point());
    std::ofstream(point() / name) << "x";
  }
  // Like a job: creates the folders, then a file.
  bool can_write() const {
    std::error_code error;
    fs::create_directories(point() / "run/checkpoints", error);
    std::ofstream file(point() / "log");
    return !error || file.good();
  }
  void set_immutable() const { set_immutable(point()); }
  static void set_immutable(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int flags = 0;
    ASSERT_EQ(::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags), 0);
    flags |= FS_IMMUTABLE_FL;
    ASSERT_EQ(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags), 0);
  }

 private:
  test::TempFolder folder_;
  std::optional<test::LoopDevice> device_;
};

TEST_F(GuardTest, AMountPointIsCreatedAndEvenRootCannotWriteUnderIt) {
  const auto guarded = guard();
  ASSERT_TRUE(guarded) << guarded.error().message();
  EXPECT_TRUE(guarded->is_ours);
  EXPECT_EQ(guarded->gap, "");
  EXPECT_FALSE(can_write());
  EXPECT_TRUE(fs::is_empty(point()));
  EXPECT_TRUE(guard()) << "it can be repeated";
}

// The owner of a folder above could have root take the attribute from any folder of the host.
TEST_F(GuardTest, NoFolderBehindALinkThatReplacedAFolderAboveIsChanged) {
  ASSERT_TRUE(guard());
  fs::create_directories(disk() / "closed/data");
  set_immutable(disk() / "closed/data");
  fs::rename(disk() / "mnt", disk() / "moved");
  fs::create_directory_symlink(disk() / "closed", disk() / "mnt");
  EXPECT_FALSE(remove_all_but({}));
  std::error_code error;
  EXPECT_FALSE(fs::create_directory(disk() / "closed/data/new", error));
  EXPECT_FALSE(guard());
  fs::remove(disk() / "mnt");
  fs::rename(disk() / "moved", disk() / "mnt");
  EXPECT_TRUE(remove_all_but({}));
  EXPECT_TRUE(can_write());
}

TEST_F(GuardTest, AMountPointStaysGuardedAcrossAMountAndUnmount) {
  ASSERT_TRUE(guard());
  cover();
  EXPECT_TRUE(can_write());
  uncover();
  EXPECT_FALSE(can_write());
}

TEST_F(GuardTest, AMountPointIsGuardedBelowExistingMounts) {
  fs::create_directories(point());
  cover();
  cover();
  const auto guarded = guard(true);
  ASSERT_TRUE(guarded) << guarded.error().message();
  EXPECT_EQ(guarded->gap, "");
  EXPECT_TRUE(can_write()) << "what is mounted is not changed";
  uncover();
  uncover();
  EXPECT_FALSE(can_write());
}

TEST_F(GuardTest, AFolderWithFilesIsNotGuarded) {
  put_file("thesis");
  const auto guarded = guard();
  ASSERT_TRUE(guarded);
  EXPECT_FALSE(guarded->is_ours);
  EXPECT_THAT(guarded->files, ElementsAre("thesis"));
  EXPECT_TRUE(can_write());
}

TEST_F(GuardTest, FilesUnderAMountedVolumeAreNamedAndNoMoreCanBeAdded) {
  put_file("log");
  cover();
  const auto guarded = guard(true);
  ASSERT_TRUE(guarded);
  EXPECT_TRUE(guarded->is_ours);
  EXPECT_THAT(guarded->files, ElementsAre("log"));
  uncover();
  std::ofstream another(point() / "another");
  EXPECT_FALSE(another.good());
  EXPECT_TRUE(guard()->is_ours) << "also once it is not mounted";
}

TEST_F(GuardTest, AMountPointGuardedBeforeIsGuardedAgainDespiteFilesInIt) {
  ASSERT_TRUE(guard());
  ASSERT_TRUE(remove_all_but({point()}));
  const UniqueFd fd(::open(point().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  ASSERT_EQ(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags), 0);  // chattr -i
  for (const char* name : {"a", "b", "c", "d", "e"}) put_file(name);
  const auto guarded = guard();
  ASSERT_TRUE(guarded);
  EXPECT_TRUE(guarded->is_ours);
  EXPECT_EQ(guarded->files.size(), 4u) << "the first few";
}

TEST_F(GuardTest, AMountPointRemovedFromTheConfigurationIsWritableAgain) {
  ASSERT_TRUE(guard());
  ASSERT_TRUE(remove_all_but({point()}));
  EXPECT_FALSE(can_write());
  cover();
  ASSERT_TRUE(remove_all_but({"/mnt/another"})) << "under what is mounted on it";
  uncover();
  EXPECT_TRUE(can_write());
  EXPECT_THAT(fs::directory_iterator(disk() / "state/mount-points"), testing::Eq(fs::directory_iterator()));
}

TEST_F(GuardTest, AnImmutableAttributeSetByAnAdministratorIsKept) {
  fs::create_directories(point());
  set_immutable();
  const auto guarded = guard();
  ASSERT_TRUE(guarded);
  EXPECT_TRUE(guarded->is_ours);
  ASSERT_TRUE(remove_all_but({}));
  EXPECT_FALSE(can_write());
}

TEST_F(GuardTest, AFileSystemWithoutTheAttributeIsReportedAsAGap) {
  fs::create_directories(point());
  cover("ramfs");
  fs::create_directory(point() / "inner");
  const auto guarded = guard_mount_point({point() / "inner", disk() / "state/mount-points", false});
  ASSERT_TRUE(guarded);
  EXPECT_TRUE(guarded->is_ours);
  EXPECT_THAT(guarded->gap,
              HasSubstr("has no immutable attribute - put the mount point on ext4, xfs or btrfs"));
}

TEST_F(GuardTest, AMountPointBehindASymbolicLinkIsRefused) {
  fs::create_directories(disk() / "real");
  fs::create_directories(disk() / "mnt");
  fs::create_directory_symlink(disk() / "real", point());
  const auto guarded = guard();
  ASSERT_FALSE(guarded);
  EXPECT_EQ(guarded.error().kind, Errc::Refused);
}

TEST_F(GuardTest, RemovingGuardsWithoutRecordsSucceeds) {
  EXPECT_TRUE(remove_all_but({}));
}

// A user who has a folder on the way could make the daemon create folders anywhere.
TEST(MountPoint, IsMadeThroughNoLink) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "closed");
  std::filesystem::create_symlink(folder / "closed", folder / "link");
  const auto refused = make_mount_point(folder / "link/a/b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "closed"));
  const mode_t mask = ::umask(077);
  EXPECT_TRUE(make_mount_point(folder / "new/a"));
  ::umask(mask);
  for (const char* made : {"new", "new/a"})
    EXPECT_EQ(std::filesystem::status(folder / made).permissions(), std::filesystem::perms(0755)) << made;
}

}  // namespace
}  // namespace spark::mounts
