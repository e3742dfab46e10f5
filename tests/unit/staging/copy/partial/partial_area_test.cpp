#include "staging/copy/partial/partial_area.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "staging/copy/partial/stale_locks.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

class StaleLockTest : public testing::Test {
 protected:
  TempFolder folder_;
  const SystemRoot root_{folder_.path()};
  LockedFile file_{::makedev(8, 17), 5678};

  void SetUp() override {
    write_text(folder_ / "proc/locks",
               "1: FLOCK  ADVISORY  WRITE 4711 08:11:5678 0 EOF\n"
               "2: POSIX  ADVISORY  WRITE 1 08:11:5678 0 EOF\n"
               "3: FLOCK  ADVISORY  WRITE 2 08:12:5678 0 EOF\n");
  }
  void thread(const std::string& number, const std::string& state, const std::string& pending) {
    write_text(folder_ / ("proc/4711/task/" + number + "/status"),
               "Name:\tspark\nState:\t" + state + "\nSigPnd:\t" + pending + "\nShdPnd:\t0000000000000000\n");
  }
};

TEST_F(StaleLockTest, ALockOfARunningProcessIsNotStale) {
  thread("4711", "S (sleeping)", "0000000000000000");
  EXPECT_FALSE(is_stale_lock(root_, file_));
  thread("4711", "D (disk sleep)", "0000000000004000");
  EXPECT_FALSE(is_stale_lock(root_, file_)) << "SIGTERM is no death";
}

TEST_F(StaleLockTest, ALockOfAKilledProcessHeldByTheKernelIsStale) {
  thread("4711", "Z (zombie)", "0000000000000000");
  thread("4712", "D (disk sleep)", "0000000000000100");
  EXPECT_TRUE(is_stale_lock(root_, file_));
  thread("4713", "S (sleeping)", "0000000000000000");
  EXPECT_FALSE(is_stale_lock(root_, file_)) << "one of its threads still runs";
}

TEST_F(StaleLockTest, AnUnlockedFileIsNotStale) {
  ++file_.inode;
  EXPECT_FALSE(is_stale_lock(root_, file_));
  EXPECT_FALSE(is_stale_lock(SystemRoot{folder_ / "nowhere"}, file_));
}

TEST(RealLocks, AreFoundInTheKernelsList) {
  const TempFolder folder;
  const UniqueFd held(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  const auto file = locked_file(SystemRoot{}, folder.path());
  ASSERT_TRUE(file);
  EXPECT_FALSE(is_stale_lock(SystemRoot{}, *file)) << "this process lives";
  EXPECT_FALSE(locked_file(SystemRoot{}, folder / "nothing"));
}

// On btrfs, stat reports the subvolume's device, and /proc/locks that of the file system.
TEST(RealLocks, AreNamedByTheDeviceOfTheMount) {
  const TempFolder folder;
  struct statx info {};
  ASSERT_EQ(::statx(AT_FDCWD, folder.path().c_str(), 0, STATX_MNT_ID, &info), 0);
  const std::string mount = std::to_string(info.stx_mnt_id);
  write_text(folder / "proc/self/mountinfo", "1" + mount + " 1 8:1 / / rw - ext4 /dev/a rw\n" + mount +
                                                 " 1 0:77 / /cache rw - btrfs /dev/b rw\n");
  const auto file = locked_file(SystemRoot{folder.path()}, folder.path());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->device, ::makedev(0, 77));
  EXPECT_EQ(locked_file(SystemRoot{folder / "nowhere"}, folder.path())->device,
            ::makedev(info.stx_dev_major, info.stx_dev_minor));
}

class LeftBehindTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::filesystem::path area_ = folder_ / "set";
  const StopFlag stop_{false};
};

TEST_F(LeftBehindTest, ThePartialCopyContinuesUnderANewLock) {
  auto stuck = PartialArea::open(area_, stop_);
  ASSERT_OK(stuck);
  write_text(stuck->data() / "f", "half");
  write_text(stuck->journal(), "lines");
  EXPECT_KIND(PartialArea::try_open(area_), Errc::Unavailable);
  ASSERT_OK(PartialArea::leave_behind(area_));
  const auto next = PartialArea::try_open(area_);
  ASSERT_OK(next);
  EXPECT_EQ(read_text(next->data() / "f"), "half");
  EXPECT_EQ(read_text(next->journal()), "lines");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  EXPECT_KIND(PartialArea::try_open(area_), Errc::Unavailable) << "it has a lock of its own";
}

TEST_F(LeftBehindTest, ACrashDuringTheExchangeLosesNothing) {
  auto stuck = PartialArea::open(area_, stop_);
  ASSERT_OK(stuck);
  write_text(stuck->data() / "f", "half");
  std::filesystem::create_directory(folder_ / ".set.stuck");  // interrupted before the exchange
  ASSERT_OK(PartialArea::leave_behind(area_));
  ASSERT_OK(PartialArea::leave_behind(area_));  // a second process that found the same state
  const auto next = PartialArea::try_open(area_);
  ASSERT_OK(next);
  EXPECT_EQ(read_text(next->data() / "f"), "half");
}

}  // namespace
}  // namespace spark::staging
