// Sources that make it hard to copy the right bytes.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "base/file.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/need.hpp"
#include "staging/manifest/source_identity.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// As on ext3, HFS+ and some NFS servers: a file that was written twice in a second has the same times.
TEST_F(CopyTest, AYoungFileIsReadWhenItsNextChangeWouldShow) {
  const std::int64_t in_seconds = 1'700'000'000'000'000'000, in_ticks = in_seconds + 1;
  using std::chrono::milliseconds;
  EXPECT_GT(unsettled_for(in_seconds, milliseconds(1990)).count(), 0);
  EXPECT_LE(unsettled_for(in_seconds, milliseconds(2000)).count(), 0);
  EXPECT_GT(unsettled_for(in_ticks, milliseconds(10)).count(), 0);
  EXPECT_LE(unsettled_for(in_ticks, milliseconds(20)).count(), 0);
}

std::int64_t shift_s = 0;
bool is_in_seconds = false;

void shift(long& seconds, long& nanoseconds) {
  seconds += shift_s;
  if (is_in_seconds) nanoseconds = 0;
}

// Every file has another ctime, as if the source's server had another clock.
std::optional<long> with_other_clock(const spark::test::FileCall& call) {
  const long* a = call.arguments;
  if (call.number == SYS_statx) {
    const long done = spark::test::call_now(call.number, a[0], a[1], a[2], a[3], a[4]);
    auto* info = reinterpret_cast<struct statx*>(a[4]);
    long nanoseconds = info->stx_ctime.tv_nsec, seconds = info->stx_ctime.tv_sec;
    shift(seconds, nanoseconds);
    info->stx_ctime.tv_sec = seconds;
    info->stx_ctime.tv_nsec = static_cast<std::uint32_t>(nanoseconds);
    return done;
  }
  const bool is_open = call.number == SYS_fstat;
  const long done = spark::test::call_now(call.number, a[0], a[1], a[2], a[3]);
  auto* info = reinterpret_cast<struct stat*>(is_open ? a[1] : a[2]);
  shift(info->st_ctim.tv_sec, info->st_ctim.tv_nsec);
  return done;
}

constexpr int kStats[] = {SYS_statx, SYS_fstat, SYS_newfstatat};

// After an hour was set back, every file of a host is of the future.
TEST_F(CopyTest, ASourceWhoseClockIsAheadIsUnchangedTheSecondTime) {
  write_text(source_ / "f", "one");
  write_text(source_ / "g", noise(3 << 20, 1));
  const auto copies = [&] {
    shift_s = 3600;
    if (!spark::test::intercept_calls(kStats, with_other_clock).empty()) return 10;
    if (!copy_now()) return 11;
    const auto again = copy_now();
    return again && again->unchanged ? 0 : 12;
  };
  EXPECT_EQ(run_and_kill(copies, std::chrono::seconds(60)), 0);
}

// A server counts in seconds, and its clock is behind: the file seems to be old.
TEST_F(CopyTest, AFileOfAServerWhoseClockIsBehindIsReadWhenItsNextChangeWouldShow) {
  for (const std::size_t size : {std::size_t{3}, std::size_t{3} << 20}) {
    write_text(source_ / "f", noise(size, 1));
    const auto waits = [&] {
      const auto began = std::chrono::steady_clock::now();
      return copy_now() && std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(1'900);
    };
    const auto copies = [&] {
      shift_s = -7200;
      is_in_seconds = true;
      if (!spark::test::intercept_calls(kStats, with_other_clock).empty()) return 10;
      if (!waits()) return 11;
      ::chmod((source_ / "f").c_str(), 0644);  // then it is compared
      return waits() ? 0 : 12;
    };
    EXPECT_EQ(run_and_kill(copies, std::chrono::seconds(60)), 0) << size;
  }
}

TEST_F(CopyTest, AFileWithDataAndNoSizeIsRefused) {
  source_ = "/proc/sys/vm/dirty_ratio";
  const auto copied = copy_now();
  EXPECT_KIND(copied, Errc::Unsupported);
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

// The earlier copy's drive can't read that file any more.
TEST_F(CopyTest, AnUnreadableFileThatWasTakenOverIsCopiedAgain) {
  write_text(source_ / "same", noise(100'000, 1));
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(source_ / "f", "two!");
  static std::uint64_t bad = 0;
  struct stat info {};
  ASSERT_EQ(::stat((copy_ / "same").c_str(), &info), 0);
  bad = info.st_ino;
  options_.verify = true;
  options_.io = IoKind::Threads;
  const auto copies = [&] {
    static constexpr int kCalls[] = {SYS_pread64};
    const auto fail_bad = [](const spark::test::FileCall& call) -> std::optional<long> {
      struct stat file {};
      if (::fstat(static_cast<int>(call.arguments[0]), &file) == 0 && file.st_ino == bad) return -EIO;
      return std::nullopt;
    };
    if (!spark::test::intercept_calls(kCalls, fail_bad).empty()) return 10;
    return copy_now() ? 0 : 11;
  };
  EXPECT_EQ(run_and_kill(copies, std::chrono::seconds(60)), 0);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

// A thread that waits for others must learn that there is nothing to wait for any more.
TEST_F(CopyTest, ASmallFileThatFailsEndsTheCopyOfLargeOnes) {
  for (int i = 0; i < 4; ++i) write_text(source_ / ("large-" + std::to_string(i)), noise(3 << 20, i));
  for (int i = 0; i < 64; ++i) write_text(source_ / ("small-" + std::to_string(i)), "x");
  CopyHooks hooks;
  hooks.before_read = [&](const std::string& path, Bytes) {
    std::error_code error;
    if (path == "small-9")
      std::filesystem::create_directory(folder_ / ".copy.spark-partial/data/small-9", error);
  };
  const auto run = [&] {
    for (int i = 0; i < 20; ++i) {
      std::filesystem::remove_all(folder_ / ".copy.spark-partial");
      if (copy_with(hooks, source_, copy_, options_, kQuiet, stop_)) return 1;
    }
    return 0;
  };
  EXPECT_EQ(run_and_kill(run, std::chrono::seconds(60)), 0);
}

// An error of the source, and the message names its file.
TEST_F(CopyTest, AttributesThatCannotBeListedFailTheCopy) {
  write_text(source_ / "f", "x");
  const auto copies = [&] {
    static constexpr int kCalls[] = {SYS_flistxattr};
    const auto fail_it = [](const spark::test::FileCall&) -> std::optional<long> { return -EIO; };
    if (!spark::test::intercept_calls(kCalls, fail_it).empty()) return 10;
    const auto copied = copy_now();
    if (copied) return 11;
    return copied.error().what.find((source_ / "f").native()) == std::string::npos ? 12 : 0;
  };
  EXPECT_EQ(run_and_kill(copies, std::chrono::seconds(60)), 0);
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

// As rsync and git read them.
TEST_F(CopyTest, ExcludePatternsWithSlashesMatchFoldersAndTheRoot) {
  for (const char* path :
       {"cache/a", "logs/b", "train/c", "train/logs/d", "train/cache/e", "train/cachefile"})
    write_text(source_ / path, "x");
  write_text(source_ / "train/deep/cache", "a file");
  options_.exclude = {"cache/", "/logs"};
  const auto copied = copy_now();
  ASSERT_OK(copied);
  EXPECT_EQ(copied->files, 4u);
  for (const char* path : {"train/c", "train/logs/d", "train/cachefile", "train/deep/cache"})
    EXPECT_TRUE(std::filesystem::exists(copy_ / path)) << path;
}

// Its size and times are those of the earlier copy; only its ctime tells.
TEST_F(CopyTest, AFileThatWasRewrittenWithItsOldTimesIsCopied) {
  write_text(source_ / "f", "one");
  write_text(source_ / "g", "same");
  ASSERT_OK(copy_now());
  const auto time = std::filesystem::last_write_time(source_ / "f");
  write_text(source_ / "f", "two");
  std::filesystem::last_write_time(source_ / "f", time);
  std::filesystem::permissions(source_ / "g", std::filesystem::perms(0644));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  std::filesystem::permissions(source_ / "g", std::filesystem::perms(0644));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(copy_now()->unchanged);
}

// As some file systems do for a folder that changes meanwhile.
TEST_F(CopyTest, AListingThatNamesAFileTwiceDoesNoHarm) {
  for (const char* name : {"a", "b", "c"}) write_text(source_ / name, name);
  const auto copied = [&] {
    static constexpr int kCalls[] = {SYS_getdents64};
    static int calls = 0;
    const auto twice = [](const spark::test::FileCall& call) -> std::optional<long> {
      const long* a = call.arguments;
      if (++calls == 2) spark::test::call_now(SYS_lseek, a[0], 0, SEEK_SET);
      return spark::test::call_now(call.number, a[0], a[1], a[2]);
    };
    if (!spark::test::intercept_calls(kCalls, twice).empty()) return 10;
    const auto first = copy_now();
    if (!first || first->files != 3) return 11;
    const auto second = copy_now();
    return second && second->unchanged ? 0 : 12;
  };
  EXPECT_EQ(run_and_kill(copied, std::chrono::seconds(60)), 0);
}

// `status` counted 500,000 files of an unfinished copy at each request.
TEST_F(CopyTest, AnUnfinishedCopyIsCountedAgainOnlyAfterItChanged) {
  const auto folder = folder_ / ".copy.spark-partial";
  write_text(folder / "journal", "x");
  write_text(folder / "data/a", noise(100'000, 1));
  const WallTime now{std::chrono::hours(500'000)};
  const Footprint first = footprint_of_partial_lately(folder, now, true);
  EXPECT_GE(first.bytes, 100'000u);
  write_text(folder / "data/b", noise(100'000, 2));
  EXPECT_EQ(footprint_of_partial_lately(folder, now + std::chrono::hours(1), true).inodes, first.inodes);
  write_text(folder / "journal", "xy");
  EXPECT_EQ(footprint_of_partial_lately(folder, now + std::chrono::seconds(50), true).inodes, first.inodes);
  EXPECT_EQ(footprint_of_partial_lately(folder, now + std::chrono::seconds(70), true).inodes,
            first.inodes + 1);
  write_text(folder / "data/c", noise(100'000, 3));
  write_text(folder / "journal", "xyz");
  const Footprint ended = footprint_of_partial_lately(folder, now + std::chrono::seconds(80), false);
  EXPECT_EQ(ended.inodes, first.inodes + 2);
}

}  // namespace
}  // namespace spark::staging
