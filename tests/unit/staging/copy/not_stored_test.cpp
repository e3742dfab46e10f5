// What the copy's file system cannot store as it is: one warning, the same at the next request, and no
// damage.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <cerrno>
#include <set>

#include "staging/files/io/io.hpp"
#include "staging/files/times.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class NotStoredTest : public CopyTest {
 protected:
  // In a child, since calls can be intercepted only for good: a copy with one warning with this text, a
  // second one that finds it unchanged, and its verification. 0: all as expected.
  int copy_twice(std::span<const int> calls, spark::test::Decide decide, const std::string& warning) {
    return run_and_kill(
        [&] {
          if (!spark::test::intercept_calls(calls, decide).empty()) return 10;
          options_.io = IoKind::Threads;
          const auto first = copy_now();
          if (!first) return 11;
          if (first->warnings.size() != 1 || first->warnings[0].find(warning) == std::string::npos) return 12;
          options_.verify = true;  // reads the equal copy back
          const auto second = copy_now();
          if (!second) return 13;
          return second->unchanged && second->warnings.empty() ? 0 : 14;
        },
        std::chrono::seconds(60));
  }
};

// ext4 reports an attribute of more than 4 KiB like a full drive.
TEST_F(NotStoredTest, AnAttributeThatIsTooLarge) {
  write_text(source_ / "photo", "x");
  if (::setxattr((source_ / "photo").c_str(), "user.large", "y", 1, 0) != 0)
    GTEST_SKIP() << "no user attributes here";
  static constexpr int kCalls[] = {SYS_fsetxattr};
  const auto refuse = [](const spark::test::FileCall&) -> std::optional<long> { return -ENOSPC; };
  EXPECT_EQ(copy_twice(kCalls, refuse, "attributes or ACLs of photo"), 0);
}

// btrfs counts no inodes, and reports none as free.
TEST_F(NotStoredTest, AnAttributeThatIsTooLargeWhereInodesAreNotCounted) {
  write_text(source_ / "photo", "x");
  if (::setxattr((source_ / "photo").c_str(), "user.large", "y", 1, 0) != 0)
    GTEST_SKIP() << "no user attributes here";
  static constexpr int kCalls[] = {SYS_fsetxattr, SYS_fstatfs};
  const auto refuse = [](const spark::test::FileCall& call) -> std::optional<long> {
    if (call.number == SYS_fsetxattr) return -ENOSPC;
    const long done = spark::test::call_now(call.number, call.arguments[0], call.arguments[1]);
    auto* space = reinterpret_cast<struct statfs*>(call.arguments[1]);
    space->f_files = space->f_ffree = 0;
    return done;
  };
  EXPECT_EQ(copy_twice(kCalls, refuse, "attributes or ACLs of photo"), 0);
}

// ext4 takes 65,000 names of a file; here one takes three.
TEST_F(NotStoredTest, MoreHardLinksThanTheFileSystemTakes) {
  write_text(source_ / "0", noise(100'000, 1));
  for (int i = 1; i < 8; ++i) std::filesystem::create_hard_link(source_ / "0", source_ / std::to_string(i));
  static constexpr int kCalls[] = {SYS_linkat};
  static int linked = 0;
  const auto refuse = [](const spark::test::FileCall& call) -> std::optional<long> {
    if (++linked % 3 == 0) return -EMLINK;
    const long* a = call.arguments;
    return spark::test::call_now(call.number, a[0], a[1], a[2], a[3]);
  };
  EXPECT_EQ(copy_twice(kCalls, refuse, "no more links"), 0);
  std::set<std::uintmax_t> counts;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(read_text(copy_ / std::to_string(i)), noise(100'000, 1)) << i;
    counts.insert(std::filesystem::hard_link_count(copy_ / std::to_string(i)));
  }
  EXPECT_LE(*counts.rbegin(), 3u);
}

TEST_F(NotStoredTest, DamageOfANameThatBecameAFileOfItsOwnIsFound) {
  write_text(source_ / "0", noise(100'000, 1));
  std::filesystem::create_hard_link(source_ / "0", source_ / "1");
  const auto copy_apart = [&] {
    static constexpr int kCalls[] = {SYS_linkat};
    const auto refuse = [](const spark::test::FileCall&) -> std::optional<long> { return -EMLINK; };
    return spark::test::intercept_calls(kCalls, refuse).empty() && copy_now() ? 0 : 1;
  };
  ASSERT_EQ(run_and_kill(copy_apart, std::chrono::seconds(60)), 0);
  const auto time = std::filesystem::last_write_time(copy_ / "1");
  write_text(copy_ / "1", noise(100'000, 2));
  std::filesystem::last_write_time(copy_ / "1", time);
  options_.verify = true;
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_FALSE(again->unchanged);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(NotStoredTest, TimesBeforeAndAfterThoseOfTheFileSystem) {
  constexpr std::int64_t kSecond = 1'000'000'000, k2038 = 2'147'483'647 * kSecond;
  EXPECT_TRUE(is_time_kept(k2038, 3'000'000'000 * kSecond + 5));
  EXPECT_FALSE(is_time_kept(k2038, k2038 - kSecond));
  EXPECT_TRUE(is_time_kept(-2'147'483'648 * kSecond, -4'000'000'000 * kSecond));
  EXPECT_FALSE(is_time_kept(-2'147'483'648 * kSecond, 5 * kSecond));
  if (const std::string why = spark::test::why_no_loop_mounts(); !why.empty()) GTEST_SKIP() << why;
  spark::test::make_image(folder_ / "image", 64 << 20, {"mkfs.ext4", "-q", "-I", "128"});
  const spark::test::LoopDevice drive(folder_ / "image");
  std::filesystem::create_directory(folder_ / "drive");
  spark::test::run_tool({"mount", drive.path(), (folder_ / "drive").native()});
  write_text(source_ / "film", "x");
  spark::test::run_tool({"touch", "-d", "2060-01-01", (source_ / "film").native()});
  copy_ = folder_ / "drive/copy";
  const auto first = copy_now();
  options_.verify = true;
  const auto second = copy_now();
  spark::test::run_tool({"umount", (folder_ / "drive").native()});
  ASSERT_OK(first);
  ASSERT_EQ(first->warnings.size(), 1u);
  EXPECT_NE(first->warnings[0].find("modification times of film"), std::string::npos) << first->warnings[0];
  ASSERT_OK(second);
  EXPECT_TRUE(second->unchanged);
}

// `ulimit -n 1024 --threads 64`: each thread holds up to 40 files.
TEST_F(NotStoredTest, AFewOpenFilesAreEnoughForManyThreads) {
  for (int i = 0; i < 6000; ++i) write_text(source_ / std::to_string(i % 7) / std::to_string(i), "x");
  const auto copied = [&] {
    const struct rlimit few { 320, 320 };
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 10;
    options_.threads = 64;
    const auto report = copy_now();
    return report && report->files == 6000 ? 0 : 1;
  };
  EXPECT_EQ(run_and_kill(copied, std::chrono::seconds(120)), 0);
}

// A clone of a repository without git-lfs.
TEST_F(NotStoredTest, GitLfsPointersAreNamed) {
  write_text(source_ / "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:" +
                                                std::string(64, '7') + "\nsize 4976698672\n");
  write_text(source_ / "notes",
             "version https://git-lfs.github.com/spec/v1 is a format" + std::string(80, '.'));
  const auto report = copy_now();
  ASSERT_OK(report);
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_NE(report->warnings[0].find("files: model.safetensors;"), std::string::npos) << report->warnings[0];
}

// Where the kernel ends io_uring's calls with an error again and again.
TEST_F(NotStoredTest, ARingThatKeepsFailingEndsTheCopy) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  for (int i = 0; i < 3; ++i) write_text(source_ / std::to_string(i), noise(3'000'000, i));
  for (const int small : {0, 1}) {
    if (small == 1) write_text(source_ / "small", "x");
    const auto copied = [&] {
      static constexpr int kCalls[] = {SYS_io_uring_enter};
      const auto refuse = [](const spark::test::FileCall&) -> std::optional<long> { return -EAGAIN; };
      if (!spark::test::intercept_calls(kCalls, refuse).empty()) return 10;
      options_.io = IoKind::Uring;
      const auto report = copy_now();
      return !report && report.error().what.find("io_uring") != std::string::npos ? 0 : 1;
    };
    EXPECT_EQ(run_and_kill(copied, std::chrono::seconds(60)), 0) << small;
  }
}

}  // namespace
}  // namespace spark::staging
