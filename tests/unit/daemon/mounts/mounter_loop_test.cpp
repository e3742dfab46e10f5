// Tests that need a real kernel: mounts on loop devices.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/published.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "daemon/mounts/shutdown.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class LoopMount : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("mounts: " + why);
  }
  void TearDown() override {
    std::ignore = mounts::unmount(folder_ / "second", Unmount::Plain);
    std::ignore = mounts::unmount(point_, Unmount::Plain);
  }
  fs::path make(std::vector<std::string> mkfs, std::size_t bytes = 16 << 20) {
    const fs::path image = folder_ / "image";
    test::make_image(image, bytes, std::move(mkfs));
    return image;
  }
  MountRequest request(const test::LoopDevice& loop, const std::string& type, bool read_only) {
    return {loop.path(), point_, type, read_only, {}};
  }
  Error error_of(const MountRequest& request) {
    const auto outcome = mounts::mount(request);
    EXPECT_FALSE(outcome) << "it was mounted";
    return outcome ? Error{} : outcome.error();
  }
  void expect_mounted(const MountRequest& request) {
    const auto outcome = mounts::mount(request);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Change::Done);
  }
  Mount mounted() {
    const auto table = read_mount_table({});
    const Mount* mount = table ? mounted_at(*table, point_) : nullptr;
    EXPECT_NE(mount, nullptr);
    return mount == nullptr ? Mount{} : *mount;
  }
  // A copy of the device as left by a host that crashes while writing.
  fs::path image_of_a_dead_writer(const std::vector<std::string>& mkfs, const std::string& type,
                                  std::size_t bytes) {
    const fs::path image = make(mkfs, bytes), copy = folder_ / "copy";
    {
      const test::LoopDevice loop(image);
      expect_mounted(request(loop, type, false));
    }
    std::ofstream(point_ / "file") << "written";
    ::sync();
    fs::copy_file(image, copy);
    EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
    return copy;
  }

  test::TempFolder folder_;
  fs::path point_ = folder_ / "point";
};

TEST_F(LoopMount, AReadOnlyMountAllowsNoWritesToFilesOrDevice) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  expect_mounted(request(loop, "ext4", true));
  EXPECT_TRUE(is_read_only(mounted()));
  EXPECT_THAT(mounted().super_options, HasSubstr("norecovery"));
  EXPECT_EQ(::open((point_ / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644), -1);
  EXPECT_EQ(errno, EROFS);
  const UniqueFd device(::open(loop.path().c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(!device || ::pwrite(device.get(), "x", 1, 0) == -1) << "the device itself took a write";
}

TEST_F(LoopMount, AMountIsWithoutSetuidAndDevicesUnlessTheConfigurationAllowsThem) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  for (const bool is_allowed : {false, true}) {
    MountRequest wanted = request(loop, "ext4", true);
    if (is_allowed) wanted.options = {"suid", "dev"};
    expect_mounted(wanted);
    EXPECT_EQ(has_option(mounted().options, "nosuid"), !is_allowed);
    EXPECT_EQ(has_option(mounted().options, "nodev"), !is_allowed);
    ASSERT_TRUE(mounts::unmount(point_, Unmount::Plain));
  }
}

TEST_F(LoopMount, AnExclusiveMountIsWritableAndCreatesItsMountPointWithMode0755) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  point_ = folder_ / "made/for/it";
  expect_mounted(request(loop, "ext4", false));
  EXPECT_FALSE(is_read_only(mounted()));
  std::ofstream(point_ / "file") << "x";
  EXPECT_TRUE(fs::exists(point_ / "file"));
  EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
  struct stat status {};
  ASSERT_EQ(::stat(point_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0755u);
}

TEST_F(LoopMount, ConfiguredOptionsAndNetdevAreApplied) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  MountRequest wanted = request(loop, "ext4", true);
  wanted.options = {"noatime", "nodev"};
  expect_mounted(wanted);
  EXPECT_TRUE(has_option(mounted().options, "noatime"));
  EXPECT_TRUE(has_option(mounted().options, "nodev"));
  const auto utab = read_file("/run/mount/utab");
  ASSERT_TRUE(utab) << utab.error().message();
  EXPECT_THAT(*utab, HasSubstr("TARGET=" + point_.string()));
  EXPECT_THAT(*utab, HasSubstr("_netdev"));
}

TEST_F(LoopMount, ACrashedWritersExt4IsMountedWithoutReplayingItsJournal) {
  const fs::path copy = image_of_a_dead_writer({"mkfs.ext4", "-q"}, "ext4", 16 << 20);
  EXPECT_TRUE(read_superblock(copy)->being_written);
  const std::string before = *read_file(copy, 64 << 20);
  {
    const test::LoopDevice loop(copy);
    expect_mounted(request(loop, "ext4", true));
  }
  EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
  EXPECT_TRUE(*read_file(copy, 64 << 20) == before) << "the mount wrote";
}

TEST_F(LoopMount, ACrashedWritersXfsIsMountedWithoutReplayingItsLog) {
  const fs::path copy = image_of_a_dead_writer({"mkfs.xfs", "-q"}, "xfs", 320 << 20);
  EXPECT_TRUE(read_superblock(copy)->being_written);
  const test::LoopDevice loop(copy);
  expect_mounted(request(loop, "xfs", true));
  EXPECT_THAT(mounted().super_options, HasSubstr("norecovery"));
}

TEST_F(LoopMount, ADeviceMountedElsewhereOnThisHostIsInUse) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  const fs::path bound = folder_ / "bound";
  expect_mounted(request(loop, "ext4", true));
  fs::create_directory(bound);
  ASSERT_EQ(::mount(point_.c_str(), bound.c_str(), nullptr, MS_BIND, nullptr), 0);
  const auto refused = mounts::unmount(point_, Unmount::Plain);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().what, HasSubstr("is mounted at " + bound.native() + " too"));
  ASSERT_EQ(::umount(bound.c_str()), 0);
  EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
}

TEST_F(LoopMount, ADeviceMountedInAContainerIsInUseAndStaysMountedHere) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  expect_mounted(request(loop, "ext4", true));
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t container = ::fork();
  if (container == 0) {
    const bool is_apart =
        ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    std::ignore = ::write(ready[1], is_apart ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char is_apart = 'n';
  ASSERT_EQ(::read(ready[0], &is_apart, 1), 1);
  ASSERT_EQ(is_apart, 'y');
  const auto refused = mounts::unmount(point_, Unmount::Plain);
  EXPECT_FALSE(refused);
  if (!refused) {
    EXPECT_EQ(refused.error().kind, Errc::Refused);
    EXPECT_THAT(refused.error().what,
                HasSubstr("(pid " + std::to_string(container) + ", mounted at " + point_.native()));
  }
  EXPECT_TRUE(is_read_only(mounted())) << "put back";
  ::kill(container, SIGKILL);
  ::waitpid(container, nullptr, 0);
  EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
}

// If the other mount's disk is gone, the file system is mounted. A scenario of tests/vm covers that case,
// since a loop device can't vanish under a mount.
TEST_F(LoopMount, AnXfsWithADetachedMountOnAnotherLiveDiskIsUnavailable) {
  const fs::path image = make({"mkfs.xfs", "-q"}, 320 << 20);
  const test::LoopDevice before(image), now(image);  // one disk that returned as another device
  expect_mounted(request(before, "xfs", true));
  {
    const UniqueFd user(::open(point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(user);
    ASSERT_TRUE(mounts::unmount(point_, Unmount::Detach));
    const Error error = error_of(request(now, "xfs", true));
    EXPECT_EQ(error.kind, Errc::Unavailable);
    EXPECT_THAT(error.what, HasSubstr("a file system of the same UUID")) << error.message();
  }
  EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
}

TEST_F(LoopMount, MmpNamesTheHostThatHasTheFileSystemOpen) {
  const fs::path image = make({"mkfs.ext4", "-q", "-O", "mmp", "-E", "mmp_update_interval=1"});
  const test::LoopDevice here(image), elsewhere(image);  // two hosts: one disk behind two devices
  expect_mounted(request(here, "ext4", false));
  const Error error = error_of({elsewhere.path(), folder_ / "second", "ext4", false, {}});
  EXPECT_EQ(error.kind, Errc::Refused) << error.message();
  char node[256] = {};
  ASSERT_EQ(::gethostname(node, sizeof node - 1), 0);
  EXPECT_THAT(error.what, HasSubstr("host '" + std::string(node) + "' has it open")) << error.message();
}

TEST_F(LoopMount, AnInvalidOptionIsReportedInTheKernelsWords) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  MountRequest wanted = request(loop, "ext4", true);
  wanted.options = {"sparkling"};
  const Error error = error_of(wanted);
  EXPECT_THAT(error.what, HasSubstr("sparkling")) << error.message();
}

// Device names are not stable: between the check and the mount, a name may change to another disk.
TEST_F(LoopMount, AFileSystemWithAnUnexpectedUuidIsNotMountedAndItsDeviceStaysWritable) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  MountRequest wanted = request(loop, "ext4", true);
  wanted.uuid = "11111111-2222-3333-4444-555555555555";
  const Error error = error_of(wanted);
  EXPECT_EQ(error.kind, Errc::Unavailable);
  EXPECT_THAT(error.what, HasSubstr(wanted.uuid)) << error.message();
  wanted.read_only = false;
  wanted.uuid = probe_superblock(loop.path())->uuid;
  expect_mounted(wanted);
}

TEST_F(LoopMount, AFileSystemOfAnotherTypeThanRequestedIsNotMounted) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  const Error error = error_of(request(loop, "xfs", true));
  EXPECT_EQ(error.kind, Errc::Failed) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("superblock"));
}

TEST_F(LoopMount, ATypeMissingFromTheKernelIsUnsupported) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  const Error error = error_of(request(loop, "sparkfs", true));
  EXPECT_EQ(error.kind, Errc::Unsupported) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("modprobe"));
}

TEST_F(LoopMount, SymbolicLinksAndFilesAreRefusedAsMountPoints) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  fs::create_directories(folder_ / "real/below");
  fs::create_directory_symlink(folder_ / "real", folder_ / "link");
  std::ofstream(folder_ / "file") << "x";
  for (const char* name : {"link", "link/below", "file"}) {
    const Error error = error_of({loop.path(), folder_ / name, "ext4", true, {}});
    EXPECT_EQ(error.kind, Errc::Refused) << error.message();
  }
}

TEST_F(LoopMount, ARefusedUnmountNamesTheProcessWorkingInTheMount) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  expect_mounted(request(loop, "ext4", false));
  const fs::path before = fs::current_path();
  fs::current_path(point_);
  const auto outcome = mounts::unmount(point_, Unmount::Plain);
  fs::current_path(before);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, HasSubstr("(pid " + std::to_string(::getpid()) + ", working folder)"));
}

TEST_F(LoopMount, ARefusedUnmountNamesAMountBelowIt) {
  const fs::path image = make({"mkfs.ext4", "-q"});
  const test::LoopDevice loop(image);
  expect_mounted(request(loop, "ext4", false));
  const fs::path other_image = folder_ / "other", below = point_ / "below";
  test::make_image(other_image, 16 << 20, {"mkfs.ext4", "-q"});
  const test::LoopDevice other(other_image);
  expect_mounted({other.path(), below, "ext4", true, {}});
  const auto outcome = mounts::unmount(point_, Unmount::Plain);
  EXPECT_TRUE(mounts::unmount(below, Unmount::Plain));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, HasSubstr("the mount at " + below.string()));
}

TEST_F(LoopMount, AFailedNfsMountNamesTheExportAndHasAHint) {
  const Error error = error_of({"127.0.0.1:/spark-stage-nothing", point_, "nfs", true, {"retry=0"}});
  EXPECT_THAT(error.what, HasSubstr("mounting 127.0.0.1:/spark-stage-nothing at " + point_.string()));
  EXPECT_FALSE(error.hint.empty());
}

TEST_F(LoopMount, AShutDownFileSystemStopsWritingAndCanBeUnmounted) {
  for (const bool is_xfs : {false, true}) {
    const fs::path image = is_xfs ? make({"mkfs.xfs", "-q"}, 320 << 20) : make({"mkfs.ext4", "-q", "-F"});
    const test::LoopDevice loop(image);
    expect_mounted(request(loop, is_xfs ? "xfs" : "ext4", false));
    std::ofstream(point_ / "late") << "never flushed";
    const auto stopped = shut_down_filesystem(point_, loop.path());
    ASSERT_TRUE(stopped) << stopped.error().message();
    EXPECT_FALSE(std::ofstream(point_ / "more").is_open());
    EXPECT_TRUE(shut_down_filesystem(point_, loop.path())) << "as after the kernel itself did it";
    ASSERT_EQ(::mount("none", point_.c_str(), "tmpfs", 0, nullptr), 0);
    EXPECT_TRUE(shut_down_filesystem(point_, loop.path())) << "the same below another mount";
    ASSERT_EQ(::umount(point_.c_str()), 0);
    ASSERT_TRUE(mounts::unmount(point_, Unmount::Plain));
    expect_mounted(request(loop, is_xfs ? "xfs" : "ext4", false));
    EXPECT_NE(read_file(point_ / "late").value_or(""), "never flushed");
    ASSERT_TRUE(mounts::unmount(point_, Unmount::Plain));
  }
}

TEST_F(LoopMount, AFileSystemBelowOtherMountsIsShutDownAndTheyStay) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q", "-F"}));
  expect_mounted(request(loop, "ext4", false));
  const fs::path parent = point_.parent_path();
  ASSERT_EQ(::mount("none", point_.c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_EQ(::mount("none", parent.c_str(), "tmpfs", 0, nullptr), 0);
  const auto stopped = shut_down_filesystem(point_, loop.path());
  EXPECT_TRUE(stopped) << stopped.error().message();
  EXPECT_EQ(::umount(parent.c_str()), 0);
  EXPECT_EQ(::umount(point_.c_str()), 0);
  EXPECT_FALSE(std::ofstream(point_ / "more").is_open());
}

// Also to a host that mounted it before, and whose reservation the target has forgotten.
TEST_F(LoopMount, TheWriterOfAnXfsShowsInItsSuperblock) {
  const test::LoopDevice loop(make({"mkfs.xfs", "-q", "-L", "data"}, 320 << 20));
  expect_mounted(request(loop, "xfs", false));
  const auto before = probe_superblock(loop.path());
  ASSERT_TRUE(announce_writer(point_, "spark1", WallTime{}));
  const auto after = probe_superblock(loop.path());
  ASSERT_TRUE(before && after);
  EXPECT_NE(before->stamp, after->stamp);
  EXPECT_TRUE(after->being_written);
  EXPECT_EQ(after->label, "data");
}

TEST_F(LoopMount, AShutdownIsDetectedWithoutChangingTheFileSystem) {
  for (const char* type : {"ext4", "xfs"}) {
    const test::LoopDevice loop(make({"mkfs." + std::string(type), "-q"}, 320 << 20));
    expect_mounted(request(loop, type, false));
    struct stat before {};
    struct stat after {};
    ASSERT_EQ(::stat(point_.c_str(), &before), 0);
    const auto sound = read_mounted_state(point_);
    ASSERT_EQ(::stat(point_.c_str(), &after), 0);
    ASSERT_TRUE(sound) << sound.error().message();
    EXPECT_FALSE(sound->is_shut_down) << type;
    EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
    EXPECT_EQ(before.st_gid, after.st_gid);
    ASSERT_TRUE(shut_down_filesystem(point_, loop.path()));
    const auto shut_down = read_mounted_state(point_);
    ASSERT_TRUE(shut_down) << shut_down.error().message();
    EXPECT_TRUE(shut_down->is_shut_down) << type;
    EXPECT_TRUE(mounts::unmount(point_, Unmount::Plain));
    fs::remove(folder_ / "image");
  }
}

TEST_F(LoopMount, AMountReportsTheUuidOfItsFileSystem) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q"}));
  const auto superblock = probe_superblock(loop.path());
  ASSERT_TRUE(superblock);
  expect_mounted(request(loop, "ext4", true));
  const auto state = read_mounted_state(point_);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->uuid, superblock->uuid);
  EXPECT_FALSE(state->is_shut_down);
  ASSERT_TRUE(mounts::unmount(point_, Unmount::Plain));
  expect_mounted(request(loop, "ext4", false));
  std::ofstream(point_ / "file") << "x";
  const auto of_file = read_mounted_state(point_ / "file");  // as a container's bind mount of it
  ASSERT_TRUE(of_file) << of_file.error().message();
  EXPECT_EQ(of_file->uuid, superblock->uuid);
}

TEST_F(LoopMount, AFileSystemIsNotShutDownIfItsMountIsOfAnotherDevice) {
  const test::LoopDevice loop(make({"mkfs.ext4", "-q", "-F"}));
  expect_mounted(request(loop, "ext4", false));
  const fs::path second = folder_ / "other";
  test::make_image(second, 16 << 20, {"mkfs.ext4", "-q", "-F"});
  const test::LoopDevice other(second);
  EXPECT_EQ(shut_down_filesystem(point_, other.path()).error().kind, Errc::Refused);
  EXPECT_TRUE(std::ofstream(point_ / "still").is_open());
}

}  // namespace
}  // namespace spark::mounts
