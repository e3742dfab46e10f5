// Too little space, a stop, a rate limit: reasons that end or slow a copy, and its resumption.
#include <unistd.h>

#include <fstream>
#include <thread>

#include "staging/copy/copy_with.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(CopyTest, TooLittleSpaceIsRefusedBeforeTheFirstByte) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const SmallTmpfs small(folder_ / "small", "size=4m");
  write_text(source_ / "f", noise(6'000'000, 1));
  copy_ = folder_ / "small/copy";
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::NoSpace);
  EXPECT_NE(report.error().what.find("needs 6.02 MB and"), std::string::npos) << report.error().what;
  EXPECT_NE(report.error().what.find("has 4.19 MB free"), std::string::npos) << report.error().what;
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "small"));
}

TEST_F(CopyTest, AStalePartialCopyCountsAsFreeableSpace) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const SmallTmpfs small(folder_ / "small", "size=10m,mode=755");
  write_text(folder_ / "small/.copy.spark-partial/data/left", noise(6'000'000, 1));
  write_text(source_ / "f", noise(7'000'000, 2));
  copy_ = folder_ / "small/copy";
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, SpaceToKeepFreeCounts) {
  write_text(source_ / "f", "x");
  options_.keep_free = 1'000'000 * kTiB;
  EXPECT_KIND(copy_now(), Errc::NoSpace);
}

TEST_F(CopyTest, TooFewInodesAreRefusedBeforeTheFirstByte) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const SmallTmpfs small(folder_ / "small", "size=64m,nr_inodes=20");
  for (int i = 0; i < 30; ++i) write_text(source_ / std::to_string(i), "x");
  copy_ = folder_ / "small/copy";
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::NoSpace);
  EXPECT_NE(report.error().what.find("inodes"), std::string::npos);
}

TEST_F(CopyTest, ADiskThatFillsUpDuringTheCopyFailsItAndTheNextResumes) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const SmallTmpfs small(folder_ / "small", "size=40m");
  for (int i = 0; i < 8; ++i) write_text(source_ / std::to_string(i), noise(4'000'000, 1));
  copy_ = folder_ / "small/copy";
  options_.threads = 1;
  int reads = 0;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string&, Bytes) {
    if (++reads == 4) write_text(folder_ / "small/other", std::string(30'000'000, 'x'));
  };
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, {}, stop_), Errc::NoSpace);
  EXPECT_FALSE(std::filesystem::exists(copy_));
  std::filesystem::remove(folder_ / "small/other");
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_GT(again->resumed_bytes, 0U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

// Their owner makes them in a moment, and others would wait for the drive meanwhile.
TEST_F(CopyTest, FilesOfManyTerabytesThatAreHolesAreRefused) {
  for (const char* name : {"h1", "h2", "h3"}) {
    write_text(source_ / name, "x");
    std::error_code error;
    std::filesystem::resize_file(source_ / name, 7'000'000'000'000, error);
    ASSERT_FALSE(error) << error.message();
  }
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::Refused);
  EXPECT_NE(report.error().what.find("21.0 TB"), std::string::npos) << report.error().what;
  std::filesystem::remove(source_ / "h1");
  std::filesystem::remove(source_ / "h2");
  std::filesystem::resize_file(source_ / "h3", 2'000'000'000);
  ASSERT_OK(copy_now());
}

TEST_F(CopyTest, AStoppedCopyIsCancelledAndResumed) {
  for (int i = 0; i < 40; ++i) write_text(source_ / std::to_string(i), noise(1'000'000, 1));
  options_.threads = 1;
  int reads = 0;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string&, Bytes) { stop_ = ++reads > 12; };
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, {}, stop_), Errc::Cancelled);
  EXPECT_TRUE(has_partial());
  EXPECT_FALSE(std::filesystem::exists(copy_));
  stop_ = false;
  options_.verify = true;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_GT(report->resumed_bytes, 0U);
  EXPECT_LT(report->resumed_bytes, 40'000'000U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, OnlyUnchangedFilesAreResumed) {
  for (int i = 0; i < 20; ++i) write_text(source_ / std::to_string(i), noise(1'000'000, 1));
  options_.threads = 1;
  int reads = 0;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string&, Bytes) { stop_ = ++reads > 12; };
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, {}, stop_), Errc::Cancelled);
  for (int i = 0; i < 20; ++i) write_text(source_ / std::to_string(i), noise(1'000'000, 2));
  std::filesystem::create_directories(source_ / "0-was-no-folder");
  stop_ = false;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->resumed_bytes, 0U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, ProgressEndsAtTheTotalsAndNeverGoesBack) {
  for (int i = 0; i < 20; ++i) write_text(source_ / std::to_string(i), noise(300'000, 1));
  Bytes last = 0;
  CopyProgress progress;
  const ProgressSink sink = [&](const CopyProgress& now) {
    EXPECT_GE(now.bytes_done, last);
    last = now.bytes_done;
    progress = now;
  };
  ASSERT_OK(copy(source_, copy_, options_, sink, stop_));
  EXPECT_EQ(progress.phase, CopyPhase::Publishing);
  EXPECT_EQ(progress.bytes_done, 6'000'000U);
  EXPECT_EQ(progress.bytes_total, 6'000'000U);
  EXPECT_EQ(progress.files_done, 20U);
}

}  // namespace
}  // namespace spark::staging
