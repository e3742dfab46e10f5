// Sources that make it hard to copy the right bytes.
#include "base/file.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/source_identity.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// As on ext3, HFS+ and some NFS servers: a file that was written twice in a second has the same times.
TEST_F(CopyTest, AYoungFileIsReadWhenItsNextChangeWouldShow) {
  const std::int64_t second = 1'000'000'000, now = 1'700'000'000 * second;
  EXPECT_GT(unsettled_for(now, now + second / 2).count(), 0);
  EXPECT_LE(unsettled_for(now, now + 2 * second).count(), 0);
  EXPECT_GT(unsettled_for(now + 1, now + 2).count(), 0);
  EXPECT_LE(unsettled_for(now + 1, now + second / 20).count(), 0);
  Entry young;
  young.ctime_ns = kUnsettled;
  EXPECT_FALSE(is_same_source(young, Entry{}));
}

TEST_F(CopyTest, AFileWithDataAndNoSizeIsRefused) {
  source_ = "/proc/sys/vm/dirty_ratio";
  const auto copied = copy_now();
  EXPECT_KIND(copied, Errc::Unsupported);
  EXPECT_FALSE(std::filesystem::exists(copy_));
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

TEST_F(CopyTest, AttributesThatCannotBeListedFailTheCopy) {
  write_text(source_ / "f", "x");
  const UniqueFd closed;
  EXPECT_FALSE(has_kept_attributes(closed.get()));
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

}  // namespace
}  // namespace spark::staging
