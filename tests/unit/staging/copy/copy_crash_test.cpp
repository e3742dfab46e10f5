// Changing sources, and interruptions at any point.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/child.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/verify/verify.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

class CopyHookTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::filesystem::path source_ = folder_ / "source", copy_ = folder_ / "copy";
  StopFlag stop_{false};
  CopyOptions options_;
  CopyHooks hooks_;

  Result<CopyReport> copy_now() { return copy_with(hooks_, source_, copy_, options_, kQuiet, stop_); }
};

TEST_F(CopyHookTest, AFileThatChangesOnceIsReadAgain) {
  write_text(source_ / "f", noise(20'000'000, 1));
  std::atomic<int> reads{0};
  hooks_.before_read = [&](const std::string&, Bytes) {
    if (++reads == 3) write_text(source_ / "f", noise(20'000'000, 2));
  };
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyHookTest, AFileThatIsReplacedByRenameIsReadAgain) {
  write_text(source_ / "f", noise(20'000'000, 1));
  std::atomic<int> reads{0};
  hooks_.before_read = [&](const std::string&, Bytes) {
    if (++reads != 3) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // later than the clock tick of the folder's
                                                                 // last change
    write_text(folder_ / "new", noise(9'000'000, 2));
    std::filesystem::rename(folder_ / "new", source_ / "f");
  };
  options_.verify = true;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(read_text(copy_ / "f"), noise(9'000'000, 2));
  ASSERT_EQ(report->warnings.size(), 1U);
  EXPECT_NE(report->warnings[0].find("files came or went in the root"), std::string::npos);
}

TEST_F(CopyHookTest, AFileThatShrinksOrGrowsIsReadAgain) {
  for (const std::uintmax_t size : {0UL, 5'000'001UL, 40'000'000UL}) {
    write_text(source_ / "f", noise(20'000'000, 1));
    std::filesystem::remove_all(copy_);
    std::atomic<int> reads{0};
    hooks_.before_read = [&](const std::string&, Bytes) {
      if (++reads == 4) std::filesystem::resize_file(source_ / "f", size);
    };
    ASSERT_OK(copy_now());
    EXPECT_EQ(std::filesystem::file_size(copy_ / "f"), size);
    EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  }
}

TEST_F(CopyHookTest, AFileThatKeepsChangingIsAnErrorThatNamesIt) {
  write_text(source_ / "log", noise(1'000'000, 1));
  int writes = 0;
  hooks_.before_read = [&](const std::string&, Bytes) {
    write_text(source_ / "log", noise(1'000'000, static_cast<std::uint64_t>(++writes)));
  };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("source/log: it changed while it was read, 3 times"), std::string::npos)
      << report.error().what;
  EXPECT_EQ(writes, 4);  // once as a small file, then three times
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(CopyHookTest, AFileThatDisappearsIsAnErrorThatNamesIt) {
  write_text(source_ / "a", "x");
  write_text(source_ / "b", "x");
  options_.threads = 1;
  hooks_.before_read = [&](const std::string&, Bytes) { std::filesystem::remove(source_ / "b"); };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("source/b"), std::string::npos) << report.error().what;
}

TEST_F(CopyHookTest, AFolderSwappedForASymlinkIsNotFollowed) {
  write_text(folder_ / "secret/b", "not yours");
  write_text(source_ / "a", "x");
  write_text(source_ / "sub/b", "x");
  options_.threads = 1;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path != "a") return;
    std::filesystem::remove_all(source_ / "sub");
    std::filesystem::create_directory_symlink(folder_ / "secret", source_ / "sub");
  };
  EXPECT_FALSE(copy_now());
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(CopyHookTest, AFileSwappedForAFifoDoesNotHang) {
  write_text(source_ / "a", "x");
  write_text(source_ / "b", "x");
  options_.threads = 1;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path != "a") return;
    std::filesystem::remove(source_ / "b");
    ASSERT_EQ(::mkfifo((source_ / "b").c_str(), 0644), 0);
  };
  EXPECT_FALSE(copy_now());
}

// An NFS server gives up the lock of a host that does not reach it.
TEST_F(CopyHookTest, NothingIsPublishedThatAnotherHostHasTakenOver) {
  write_text(source_ / "a", "x");
  hooks_.before_read = [&](const std::string&, Bytes) {
    write_text(folder_ / ".copy.spark-partial/lock", "beta\nits-boot\n");
  };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Errc::Unavailable);
  EXPECT_NE(report.error().what.find("taken over by host beta"), std::string::npos) << report.error().what;
  EXPECT_TRUE(was_taken_over(report.error()));
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_EQ(read_text(folder_ / ".copy.spark-partial/lock"), "beta\nits-boot\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".copy.spark-partial/manifest"))
      << "it would prove the other host's data";
}

TEST_F(CopyHookTest, AFailureAfterATakeoverNamesTheOtherHost) {
  write_text(source_ / "a", "x");
  hooks_.before_read = [&](const std::string&, Bytes) {
    write_text(folder_ / ".copy.spark-partial/lock", "beta\nits-boot\n");
    std::filesystem::remove_all(folder_ / ".copy.spark-partial/data");
  };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("taken over by host beta"), std::string::npos) << report.error().what;
}

// --- a crash after each step of publishing

class CrashAfter : public CopyHookTest, public testing::WithParamInterface<const char*> {};

TEST_P(CrashAfter, TheNextCopyIsCorrect) {
  for (const bool replaces : {false, true}) {
    std::filesystem::remove_all(copy_);
    std::filesystem::remove(folder_ / ".copy.spark-manifest");
    hooks_.step = {};
    write_text(source_ / "f", "old!");
    write_text(source_ / "same", "same");
    if (replaces) {
      ASSERT_OK(copy_now());
    }
    write_text(source_ / "f", "new!");
    hooks_.step = [](const char* step) -> Result<> {
      if (std::string_view(step) == GetParam()) return fail(Errc::Failed, "the power went");
      return {};
    };
    ASSERT_FALSE(copy_now());
    // The published name always has a complete copy: the old one or the new one.
    if (std::filesystem::exists(copy_)) {
      const std::string text = read_text(copy_ / "f");
      EXPECT_TRUE(text == "new!" || (replaces && text == "old!")) << text;
    }
    hooks_.step = {};
    ASSERT_OK(copy_now());
    EXPECT_EQ(differences_by_rsync(source_, copy_), "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / ".copy.spark-partial"));

    // It is recognised as our copy.
    write_text(source_ / "f", "next");
    ASSERT_OK(copy_now());
    EXPECT_EQ(read_text(copy_ / "f"), "next");
  }
}
INSTANTIATE_TEST_SUITE_P(Steps, CrashAfter, testing::Values("manifest", "rename", "flush"));

TEST_F(CopyHookTest, OldContentIsNotMistakenForNewAfterAnExchange) {
  write_text(source_ / "f", "old!");
  write_text(source_ / "g", "1");
  ASSERT_OK(copy_now());
  write_text(source_ / "f", "new!");
  hooks_.step = [](const char* step) -> Result<> {
    if (std::string_view(step) == "rename") return fail(Errc::Failed, "the power went");
    return {};
  };
  ASSERT_FALSE(copy_now());
  hooks_.step = {};
  write_text(source_ / "g", "2");
  ASSERT_OK(copy_now());
  EXPECT_EQ(read_text(copy_ / "f"), "new!");
  EXPECT_EQ(read_text(copy_ / "g"), "2");
}

// --- kill -9 at random moments

TEST_F(CopyHookTest, TheNextAttemptSucceedsAfterAKillAtAnyMoment) {
  for (int i = 0; i < 60; ++i)
    write_text(source_ / std::to_string(i % 6) / std::to_string(i), noise(200'000, 7));
  write_text(source_ / "large", noise(20'000'000, 8));
  std::mt19937_64 random(std::random_device{}());
  int killed = 0;
  std::chrono::microseconds whole(
      std::chrono::milliseconds(400));  // duration of the last run that was not killed
  for (int round = 0; round < 200 && killed < 10; ++round) {
    const std::chrono::microseconds delay(random() % static_cast<std::uint64_t>(whole.count()));
    const auto began = std::chrono::steady_clock::now();
    const int status = run_and_kill([&] { return copy_now() ? 0 : 1; }, delay);
    if (status == 0)
      whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
    ASSERT_TRUE(status == 0 || status == 137) << status;
    killed += status == 137 ? 1 : 0;
    // The new copy or the previous one, never a mixture.
    const std::string differences =
        std::filesystem::exists(copy_) ? differences_by_rsync(source_, copy_) : "";
    if (status == 0 || !std::filesystem::exists(folder_ / "before")) {
      EXPECT_EQ(differences, "");
    } else if (!differences.empty()) {
      EXPECT_EQ(differences_by_rsync(folder_ / "before", copy_), "");
    }
    if (status != 0) continue;
    ASSERT_TRUE(run_child({"rsync", "-a", "--checksum", "--modify-window=-1", "--delete",
                           source_.native() + "/", folder_ / "before/"},
                          std::chrono::minutes(1)));
    write_text(source_ / "3" / std::to_string(round), noise(150'000, random()));
  }
  EXPECT_GT(killed, 0);
  options_.verify = true;
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyHookTest, TwoConcurrentProcessesMakeOneCopy) {
  for (int i = 0; i < 30; ++i) write_text(source_ / std::to_string(i), noise(100'000, 7));

  const pid_t other = ::fork();
  if (other == 0) ::_exit(copy_now() ? 0 : 1);
  const auto report = copy_now();
  ASSERT_OK(report);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

}  // namespace
}  // namespace spark::staging
