// Real mounts of a loop device, in a separate mount namespace with propagating mounts, as on a host with
// systemd.
#include "daemon/mounts/hidden_mount.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "base/kernel/mount_table.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "daemon/mounts/mount_point.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class HiddenMountTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("a mount of a loop device: " + why);
    test::make_image(folder_ / "image", 16 << 20, {"mkfs.ext4", "-q"});
    fs::create_directories(target_);
    fs::create_directories(victim_);
  }
  void on_a_host(const std::function<void(const std::string& device)>& body) {
    const test::LoopDevice loop(folder_ / "image");
    const pid_t child = ::fork();
    if (child == 0) {
      EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
      EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr), 0);
      EXPECT_TRUE(propagates_mounts());
      body(loop.path());
      std::fflush(stdout);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_TRUE(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  // Where the device is mounted.
  static std::vector<fs::path> targets_of(const std::string& device) {
    std::vector<fs::path> targets;
    for (const Mount& mount : read_mount_table({}).value_or(std::vector<Mount>{})) {
      if (mount.source == device) targets.push_back(mount.target);
    }
    return targets;
  }
  // By the user whose folder it is: it leads elsewhere.
  void replace_by_link() {
    fs::rename(folder_ / "users", folder_ / "moved");
    fs::create_directory_symlink(folder_ / "closed", folder_ / "users");
  }

  test::TempFolder folder_;
  fs::path target_ = folder_ / "users/volume", victim_ = folder_ / "closed/volume";
};

TEST_F(HiddenMountTest, ALinkThatAUserPutsInTheWayMeanwhileLeadsTheMountNowhere) {
  on_a_host([&](const std::string& device) {
    const auto opened = open_mount_point(target_);
    ASSERT_TRUE(opened);
    replace_by_link();
    EXPECT_EQ(mount_onto(*opened, device, target_, "ext4", "rw").error_number, ELOOP);
    EXPECT_THAT(targets_of(device), testing::IsEmpty());
  });
}

TEST_F(HiddenMountTest, AFolderThatIsMovedMeanwhileIsNotMountedElsewhere) {
  on_a_host([&](const std::string& device) {
    const auto opened = open_mount_point(target_);
    ASSERT_TRUE(opened);
    fs::rename(folder_ / "users", folder_ / "moved");
    fs::create_directories(target_);
    EXPECT_EQ(mount_onto(*opened, device, target_, "ext4", "rw").error_number, ELOOP);
    EXPECT_THAT(targets_of(device), testing::IsEmpty());
  });
}

TEST_F(HiddenMountTest, AMountPointBehindALinkIsRefused) {
  replace_by_link();
  const auto opened = open_mount_point(target_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Errc::Refused);
}

TEST_F(HiddenMountTest, AMountIsAsAnyOtherAndIsSeenByAllProcesses) {
  on_a_host([&](const std::string& device) {
    const auto outcome = mounts::mount({device, target_, "ext4", false, {"noatime"}});
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_THAT(targets_of(device), testing::ElementsAre(target_));
    const auto table = read_mount_table({});
    const Mount* mount = mounted_at(*table, target_);
    ASSERT_NE(mount, nullptr);
    for (const char* option : {"rw", "nosuid", "nodev", "noatime"})
      EXPECT_TRUE(has_option(mount->options, option)) << option;
    EXPECT_THAT(*read_file("/proc/self/mountinfo"),
                HasSubstr(target_.native() + " rw,nosuid,nodev,noatime shared:"));
    EXPECT_THAT(read_file("/run/mount/utab").value_or(""), HasSubstr("TARGET=" + target_.native()));
    EXPECT_TRUE(mounts::unmount(target_, Unmount::Plain));
    EXPECT_THAT(read_file("/run/mount/utab").value_or(""), testing::Not(HasSubstr(target_.native())));
    EXPECT_THAT(targets_of(device), testing::IsEmpty());
  });
}

TEST_F(HiddenMountTest, AFailureIsReportedInTheKernelsTerms) {
  on_a_host([&](const std::string& device) {
    const auto opened = open_mount_point(target_);
    ASSERT_TRUE(opened);
    EXPECT_EQ(mount_onto(*opened, device, target_, "ext4", "no_such_option").error_number, EINVAL);
    EXPECT_THAT(targets_of(device), testing::IsEmpty());
  });
}

}  // namespace
}  // namespace spark::mounts
