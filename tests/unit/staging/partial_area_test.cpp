#include "staging/partial_area.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "staging/dying.hpp"
#include "support.hpp"

namespace spark::staging {
namespace {

using namespace test;

class DyingTest : public testing::Test {
 protected:
  TempFolder folder_;
  const SystemRoot root_{folder_.path()};
  struct stat file_ {};

  void SetUp() override {
    file_.st_dev = ::makedev(8, 17);
    file_.st_ino = 5678;
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

TEST_F(DyingTest, AProcessThatRunsIsNot) {
  thread("4711", "S (sleeping)", "0000000000000000");
  EXPECT_FALSE(is_locked_by_the_dying(root_, file_));
  thread("4711", "D (disk sleep)", "0000000000004000");
  EXPECT_FALSE(is_locked_by_the_dying(root_, file_)) << "SIGTERM is no death";
}

TEST_F(DyingTest, AKilledOneThatTheKernelHoldsIs) {
  thread("4711", "Z (zombie)", "0000000000000000");
  thread("4712", "D (disk sleep)", "0000000000000100");
  EXPECT_TRUE(is_locked_by_the_dying(root_, file_));
  thread("4713", "S (sleeping)", "0000000000000000");
  EXPECT_FALSE(is_locked_by_the_dying(root_, file_)) << "one of its threads still runs";
}

TEST_F(DyingTest, WhatNobodyHasLockedIsNot) {
  ++file_.st_ino;
  EXPECT_FALSE(is_locked_by_the_dying(root_, file_));
  EXPECT_FALSE(is_locked_by_the_dying(SystemRoot{folder_ / "nowhere"}, file_));
}

TEST(RealLocks, AreFoundInTheKernelsList) {
  const TempFolder folder;
  const UniqueFd held(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  struct stat info {};
  ASSERT_EQ(::stat(folder.path().c_str(), &info), 0);
  EXPECT_FALSE(is_locked_by_the_dying(SystemRoot{}, info)) << "this process lives";
}

class LeftBehindTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::filesystem::path area_ = folder_ / "set";
  const StopFlag stop_{false};
};

TEST_F(LeftBehindTest, WhatIsInTheFolderGoesOnWithoutTheLock) {
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

TEST_F(LeftBehindTest, ACrashOnTheWayLosesNothing) {
  auto stuck = PartialArea::open(area_, stop_);
  ASSERT_OK(stuck);
  write_text(stuck->data() / "f", "half");
  std::filesystem::create_directory(folder_ / ".set.stuck");  // cut short before the exchange
  ASSERT_OK(PartialArea::leave_behind(area_));
  ASSERT_OK(PartialArea::leave_behind(area_));  // a second one who saw the same
  const auto next = PartialArea::try_open(area_);
  ASSERT_OK(next);
  EXPECT_EQ(read_text(next->data() / "f"), "half");
}

}  // namespace
}  // namespace spark::staging
