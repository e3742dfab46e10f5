#include "staging/copy/partial/partial_area.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <future>

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

// NFS keeps the locks of folders on each host: the test plays the other host with a lock on the file alone.
class AnotherHost : public testing::Test {
 protected:
  TempFolder folder_;
  const std::filesystem::path area_ = folder_ / "set", lock_ = area_ / "lock";
  const StopFlag stop_{false};
  UniqueFd held_;

  static std::string this_host() {
    char name[256] = "";
    EXPECT_EQ(::gethostname(name, sizeof name - 1), 0);
    return name;
  }
  void copy_on(const std::string& host) {
    std::filesystem::create_directory(area_);
    write_text(lock_, host);
    held_.reset(::open(lock_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(held_.get(), LOCK_EX | LOCK_NB), 0);
  }
};

// In a folder without the sticky bit others rename what they may not delete; into one with it they move
// folders to which they may write.
class SharedFolder : public testing::TestWithParam<unsigned> {
 protected:
  SharedFolder() { EXPECT_EQ(::chmod(folder_.path().c_str(), GetParam()), 0); }
  mode_t mode() const {
    struct stat info {};
    EXPECT_EQ(::stat(area_.c_str(), &info), 0);
    return info.st_mode & 0777U;
  }
  TempFolder folder_;
  const std::filesystem::path area_ = folder_ / ".copy.spark-partial";
  const std::filesystem::path stuck_ = folder_ / "..copy.spark-partial.stuck";
  const StopFlag stop_{false};
};

TEST_P(SharedFolder, AFolderThatGotTheNameOfAPartialCopyIsNotUsed) {
  write_text(area_ / "data/thesis", "x");
  ASSERT_EQ(::chmod(area_.c_str(), 0755), 0);
  EXPECT_KIND(PartialArea::open(area_, stop_), Errc::Refused);
  EXPECT_EQ(mode(), 0755U);
  ASSERT_EQ(::chmod(area_.c_str(), 0700), 0);
  EXPECT_KIND(PartialArea::open(area_, stop_), Errc::Refused);
  std::filesystem::remove_all(area_ / "data");
  ASSERT_OK(PartialArea::open(area_, stop_));  // a process was killed before it made the mark
}

TEST_P(SharedFolder, AnInterruptedCopyContinuesUnderItsOwnNameAlone) {
  {
    const auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    write_text(area->data() / "f", "half");
  }
  std::filesystem::rename(area_, folder_ / ".other.spark-partial");
  EXPECT_KIND(PartialArea::try_open(folder_ / ".other.spark-partial"), Errc::Refused);
  std::filesystem::rename(folder_ / ".other.spark-partial", area_);
  auto area = PartialArea::try_open(area_);
  ASSERT_OK(area);
  EXPECT_EQ(read_text(area->data() / "f"), "half");
  ASSERT_OK(area->clear());
}

TEST_P(SharedFolder, AFolderThatGotTheNameOfOneThatAStuckProcessLeftIsNeitherTakenNorDeleted) {
  write_text(stuck_ / "private/chapter", "x");
  write_text(stuck_ / "data/thesis", "x");
  for (const mode_t mode : {0755U, 0700U}) {
    ASSERT_EQ(::chmod(stuck_.c_str(), mode), 0);
    EXPECT_KIND(PartialArea::open(area_, stop_), Errc::Refused);
    EXPECT_KIND(PartialArea::leave_behind(area_), Errc::Refused);
  }
  EXPECT_EQ(read_text(stuck_ / "private/chapter"), "x");
  EXPECT_EQ(read_text(stuck_ / "data/thesis"), "x");
}

TEST_P(SharedFolder, WhatAStuckProcessLeftIsTaken) {
  auto stuck = PartialArea::open(area_, stop_);
  ASSERT_OK(stuck);
  write_text(stuck->data() / "f", "half");
  write_text(stuck->replaced() / "f", "earlier");
  ASSERT_OK(PartialArea::leave_behind(area_));
  const auto next = PartialArea::try_open(area_);
  ASSERT_OK(next);
  EXPECT_EQ(read_text(next->data() / "f"), "half");
  EXPECT_EQ(read_text(next->replaced() / "f"), "earlier")
      << "the only copy between two steps of a replacement";
  EXPECT_FALSE(std::filesystem::exists(stuck_));
}

// Some servers of files have a new folder inherit the permissions of the one around it.
TEST_P(SharedFolder, AnEmptyFolderThatIsOpenToOthersIsClosedAndUsed) {
  std::filesystem::create_directory(area_);
  ASSERT_EQ(::chmod(area_.c_str(), 0770), 0);
  {
    const auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    EXPECT_EQ(mode(), 0700U);
    write_text(area->data() / "f", "half");
  }
  ASSERT_OK(PartialArea::try_open(area_));
}

TEST_P(SharedFolder, OfCopiesThatBeginAtOnceOneWaitsForTheOther) {
  const auto begin = [&] {
    std::string refused;
    for (int i = 0; i < 500; ++i) {
      const auto area = PartialArea::try_open(area_);
      if (!area && area.error().kind != Errc::Unavailable) refused = area.error().message();
    }
    return refused;
  };
  auto other = std::async(std::launch::async, begin);
  EXPECT_EQ(begin(), "");
  EXPECT_EQ(other.get(), "");
}

INSTANTIATE_TEST_SUITE_P(WithoutAndWithTheStickyBit, SharedFolder, testing::Values(0777U, 01777U));

TEST(PartialAreas, AreNotDelayedByAFifoInThem) {
  ::alarm(60);  // for want of a writer a FIFO blocks for good
  const TempFolder folder;
  for (const char* name : {"state", "lock"}) {
    std::filesystem::create_directories(folder / "set");
    ASSERT_EQ(::mkfifo((folder / "set" / name).c_str(), 0600), 0);
    auto area = PartialArea::try_open(folder / "set");
    ASSERT_OK(area);
    (void)area->check_held();
    ASSERT_OK(area->keep_only("this"));
    ASSERT_OK(area->clear());
  }
  ::alarm(0);
}

TEST_F(AnotherHost, ThatCopiesThereIsNamed) {
  copy_on("beta\n");
  write_text(area_ / "data/f", "half");
  const auto area = PartialArea::open(area_, stop_);
  ASSERT_FALSE(area);
  EXPECT_EQ(area.error().kind, Errc::Unavailable);
  EXPECT_NE(area.error().what.find("host beta"), std::string::npos) << area.error().what;
  EXPECT_EQ(read_text(area_ / "data/f"), "half");
}

TEST_F(AnotherHost, WithTheNameOfThisOneIsNotWaitedFor) {
  copy_on(this_host() + "\nother-boot\n");
  const auto area = PartialArea::open(area_, stop_);
  ASSERT_FALSE(area);
  EXPECT_EQ(area.error().kind, Errc::Unavailable);
  EXPECT_NE(area.error().what.find("another host that is also called " + this_host()), std::string::npos)
      << area.error().what;
}

// Reinstalling a host changes its machine ID. On NFS, another host could have that name.
TEST_F(AnotherHost, WithTheNameOfThisOneLeavesWhatItCopiedOnALocalDrive) {
  copy_on(this_host() + "\nother-boot\nother-machine\n");
  write_text(area_ / "data/f", "half");
  held_.reset();
  const auto area = PartialArea::try_open(area_);
  ASSERT_OK(area);
  EXPECT_EQ(read_text(area->data() / "f"), "half");
}

TEST_F(AnotherHost, WithNoNumberOfItsStartMayBeThisOne) {
  copy_on(this_host() + "\n");
  const auto area = PartialArea::try_open(area_);
  ASSERT_FALSE(area);
  EXPECT_NE(area.error().what.find("another process is copying there"), std::string::npos)
      << area.error().what;
}

TEST_F(AnotherHost, ThatHasNotWrittenItsNameYetKeepsTheFolder) {
  copy_on("");
  EXPECT_KIND(PartialArea::try_open(area_), Errc::Unavailable);
}

TEST_F(AnotherHost, ThatDiedLeavesWhatItCopiedToTheNext) {
  copy_on("beta\n");
  write_text(area_ / "data/f", "half");
  held_.reset();
  const auto area = PartialArea::try_open(area_);
  ASSERT_OK(area);
  EXPECT_EQ(read_text(area->data() / "f"), "half");
}

TEST_F(AnotherHost, SeesThisOneCopy) {
  {
    const auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    held_.reset(::open(lock_.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_NE(::flock(held_.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_TRUE(read_text(lock_).starts_with(this_host() + "\n"));
    write_text(area->data() / "f", "half");
  }
  EXPECT_EQ(::flock(held_.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(std::filesystem::exists(lock_)) << "what is left is data";
  {
    auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    ASSERT_OK(area->clear());
    EXPECT_TRUE(std::filesystem::exists(lock_)) << "it still has the folder";
  }
  EXPECT_FALSE(std::filesystem::exists(area_));
}

// The NFS server gave up the lock of this host; the other one has locked the same file.
TEST_F(AnotherHost, ThatTookTheFolderOverKeepsItsLockFileAndTheFolder) {
  {
    const auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    write_text(lock_, "beta\nits-boot\n");
    const auto held = area->check_held();
    ASSERT_FALSE(held);
    EXPECT_TRUE(was_taken_over(held.error()));
  }
  EXPECT_EQ(read_text(lock_), "beta\nits-boot\n");
}

// A volume that is taken down by force is detached under its copies; a retry is right once it is back.
TEST_F(AnotherHost, IsNotNamedForALockFileThatIsMissing) {
  const auto area = PartialArea::try_open(area_);
  ASSERT_OK(area);
  std::filesystem::rename(area_, folder_ / "detached");
  const auto held = area->check_held();
  std::filesystem::rename(folder_ / "detached", area_);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().kind, Errc::Unavailable);
  EXPECT_FALSE(was_taken_over(held.error())) << held.error().message();
}

TEST_F(AnotherHost, ThatMadeTheLockFileAgainKeepsIt) {
  {
    const auto area = PartialArea::try_open(area_);
    ASSERT_OK(area);
    const std::string text = read_text(lock_);
    std::filesystem::rename(lock_, folder_ / "deleted");
    write_text(lock_, text);
  }
  EXPECT_TRUE(std::filesystem::exists(lock_));
}

TEST_F(AnotherHost, ThatIsCopyingThereHasTakenNothingOver) {
  copy_on("beta\n");
  const auto area = PartialArea::open(area_, stop_);
  ASSERT_FALSE(area);
  EXPECT_FALSE(was_taken_over(area.error()));
}

// A full cache has to be able to delete a copy.
TEST(PartialAreas, AreLockedOnAFullLocalDriveToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const TempFolder folder;
  const SmallTmpfs small(folder / "small", "size=1m,nr_inodes=4,mode=755");
  const auto path = folder / "small/set";
  write_text(path / "data", "half");
  write_text(folder / "small/last", "");
  ASSERT_EQ(::open((path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), -1);
  auto area = PartialArea::try_open(path);
  ASSERT_OK(area);
  EXPECT_KIND(PartialArea::try_open(path), Errc::Unavailable);
  ASSERT_OK(area->clear());
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

// Temporary names of files that are replaced, or of a later version of the program.
TEST(PartialAreaTest, ClearingRemovesWhateverIsThere) {
  const TempFolder folder;
  const StopFlag stop{false};
  {
    auto area = PartialArea::open(folder / ".partial", stop);
    ASSERT_OK(area);
    write_text(area->folder() / "size.123.new", "x");
    write_text(area->folder() / "data/f", "x");
    write_text(area->folder() / "unknown/f", "x");
    ASSERT_OK(area->clear());
    EXPECT_TRUE(std::filesystem::exists(area->folder() / "lock"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / ".partial"));
}

}  // namespace
}  // namespace spark::staging
