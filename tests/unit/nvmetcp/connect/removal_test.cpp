#include "nvmetcp/connect/removal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <thread>

#include "tests/support/fake_sysfs.hpp"
#include "tests/support/local_port.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/nvmetcp/connect/fake_kernel.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::milliseconds;
using test::tcp_controller;

struct RemovalTest : testing::Test {
  RemovalTest() {
    EXPECT_EQ(::listen(target.fd.get(), 4), 0);
    auto controller = tcp_controller("nvme1", "s");
    controller.portal = target.portal;
    sysfs.add_controller(controller);
    sysfs.add_node("nvme1", "nvme0c1n1", 1);
    sysfs.add_head("nvme0n1", 1, "259:1", 2048);
  }
  test::FakeSysfs sysfs;
  test::LocalPort target;
};

TEST_F(RemovalTest, ARemovalIsDoneWhenTheControllerIsGone) {
  const FakeKernel kernel(sysfs, "nvme1");
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon).value(), Change::Done);
  EXPECT_FALSE(sysfs.has("sys/class/nvme/nvme1"));
}

TEST_F(RemovalTest, AMissingControllerNeedsNoRemoval) {
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme9", "s", CutOff{}, kSoon).value(), Change::AlreadyThere);
}

TEST_F(RemovalTest, AnotherSubsystemsControllerIsRefusedUntouched) {
  const auto removed = remove_controller(sysfs.root(), "nvme1", "other", CutOff{}, kSoon);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
}

TEST_F(RemovalTest, ALocalDriveIsRefusedRegardlessOfItsNqn) {
  auto local = tcp_controller("nvme2", "s");
  local.transport = "pcie";
  sysfs.add_controller(local);
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme2", "s", CutOff{}, kSoon).error().kind, Errc::Refused);
}

TEST_F(RemovalTest, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"../nvme1", "nvme1/", "nvme", "nvme1n1", ""}) {
    EXPECT_EQ(remove_controller(sysfs.root(), name, "s", CutOff{}, kSoon).error().kind, Errc::Invalid)
        << name;
  }
}

TEST_F(RemovalTest, TheLastPathOfADeviceWithAHolderIsRefused) {
  sysfs.write("sys/class/block/nvme0n1/nvme0n1p1/holders/dm-3", "");
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
  EXPECT_NE(removed.error().what.find("dm-3"), std::string::npos);
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
}

TEST_F(RemovalTest, OneOfTwoPathsOfADeviceWithAHolderMayBeRemoved) {
  sysfs.write("sys/class/block/nvme0n1/holders/md127", "");
  sysfs.add_controller(tcp_controller("nvme2", "s"));
  sysfs.add_node("nvme2", "nvme0c2n1", 1);
  const FakeKernel kernel(sysfs, "nvme1");
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon).value(), Change::Done);
}

TEST_F(RemovalTest, AllPathsOfADeviceWithAHolderMayNotLeaveTogether) {
  sysfs.write("sys/class/block/nvme0n1/holders/md127", "");
  sysfs.add_controller(tcp_controller("nvme2", "s"));
  sysfs.add_node("nvme2", "nvme0c2n1", 1);
  EXPECT_TRUE(check_unused(sysfs.root(), {"nvme1"}, {}));
  EXPECT_EQ(check_unused(sysfs.root(), {"nvme1", "nvme2"}, {}).error().kind, Errc::Refused);
  sysfs.add_controller(tcp_controller("nvme3", "s"));
  sysfs.add_node("nvme3", "nvme0c3n1", 1);
  EXPECT_TRUE(check_unused(sysfs.root(), {"nvme1", "nvme2"}, {}));
}

TEST_F(RemovalTest, AnotherTargetsControllerOfTheSameNqnIsNotASecondPath) {
  sysfs.write("sys/class/block/nvme0n1/holders/md127", "");
  sysfs.add_controller(tcp_controller("nvme2", "s"));
  sysfs.add_node("nvme2", "nvme0c2n2", 2);
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, milliseconds(100));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
}

TEST_F(RemovalTest, AnotherDiskInUseIsNotLostWithTheOneThatMayBeCutOff) {
  sysfs.write("sys/class/block/nvme0n1/holders/dm-1", "");
  sysfs.add_node("nvme1", "nvme0c1n2", 2);
  sysfs.add_head("nvme0n2", 2, "259:2", 2048);
  sysfs.write("sys/class/block/nvme0n2/holders/dm-2", "");
  const CutOff first{false, {makedev(259, 1)}};
  EXPECT_EQ(check_unused(sysfs.root(), {"nvme1"}, first).error().kind, Errc::Refused);
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", first, kSoon);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
  EXPECT_NE(removed.error().what.find("dm-2 is built on its nvme0n2"), std::string::npos);
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
  sysfs.remove("sys/class/block/nvme0n2/holders/dm-2");
  const FakeKernel kernel(sysfs, "nvme1");
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme1", "s", first, kSoon).value(), Change::Done);
}

TEST_F(RemovalTest, AUserWhoComesWhileADeadTargetIsWaitedForKeepsItsDisk) {
  target.fd.reset();
  std::thread keep_alive([&] {
    std::this_thread::sleep_for(milliseconds(150));
    sysfs.write("sys/class/block/nvme0n1/holders/md127", "");
    sysfs.write("sys/class/nvme/nvme1/state", "connecting");
  });
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon);
  keep_alive.join();
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
}

// Like a mount in any namespace, of the disk or of a partition.
TEST_F(RemovalTest, TheLastPathOfADeviceInUseIsRefusedUnlessItMayBeCutOff) {
  if (const auto why = test::why_no_loop_mounts(); !why.empty()) SPARK_SKIP(why);
  sysfs.write("image", std::string(1 << 20, '\0'));
  const test::LoopDevice disk(sysfs.root() / "image");
  std::filesystem::create_directories(sysfs.root() / "dev");
  std::filesystem::create_symlink(disk.path(), sysfs.root() / "dev/nvme0n1");
  const UniqueFd user(::open(disk.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  ASSERT_TRUE(user);
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::Refused);
  EXPECT_NE(removed.error().what.find("nvme0n1 is still in use"), std::string::npos) << removed.error().what;
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
  const FakeKernel kernel(sysfs, "nvme1");
  EXPECT_EQ(remove_controller(sysfs.root(), "nvme1", "s", CutOff{false, {makedev(259, 1)}}, kSoon).value(),
            Change::Done);
}

TEST_F(RemovalTest, AnUnfinishedRemovalTimesOut) {
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, milliseconds(120));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::TimedOut);
}

// A write to delete_controller would block in the kernel for a minute.
TEST_F(RemovalTest, ADeadTargetIsRemovedOnlyAfterItsKeepAliveExpires) {
  target.fd.reset();
  const FakeKernel kernel(sysfs, "nvme1");
  std::string written_while_live = "never looked";
  std::thread keep_alive([&] {
    std::this_thread::sleep_for(milliseconds(150));
    written_while_live = sysfs.read("sys/class/nvme/nvme1/delete_controller");
    sysfs.write("sys/class/nvme/nvme1/state", "connecting");
  });
  const auto removed = remove_controller(sysfs.root(), "nvme1", "s", CutOff{}, kSoon);
  keep_alive.join();
  EXPECT_EQ(removed.value(), Change::Done);
  EXPECT_EQ(written_while_live, "");
}

}  // namespace
}  // namespace spark::nvmetcp
