#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "tests/support/failing_call.hpp"
#include "tests/unit/daemon/workers/verbs/stage_out_fixture.hpp"

namespace spark::workers {
namespace {

using namespace staging::test;

TEST_F(StageOutVerb, WithoutAStateOfTheSourceNothingIsSent) {
  EXPECT_KIND(stage_out_verb(request(), kNoProgress), Errc::Invalid);
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
}

// Hours may be between the two: the volume was away.
TEST_F(StageOutVerb, OnlyTheStateThatWasFlushedIsSentAlsoByALinkToTheSource) {
  std::filesystem::create_symlink(source_, folder_ / "same");
  for (const std::filesystem::path& source : {source_, folder_ / "same"}) {
    write_text(source_ / "optimizer", "x");
    json::object asked = request();
    asked["source"] = source.native();
    const auto flushed = flush_source_verb({{"source", source.native()}, {"uid", ::geteuid()}}, kNoProgress);
    ASSERT_TRUE(flushed) << flushed.error().message();
    asked["written"] = flushed->at("written");
    std::filesystem::rename(source_ / "optimizer", folder_ / "optimizer");
    EXPECT_KIND(stage_out_verb(asked, kNoProgress), Errc::Mismatch);
    EXPECT_FALSE(std::filesystem::exists(run_ / "step-1/optimizer"));
    std::filesystem::rename(folder_ / "optimizer", source_ / "optimizer");
    ASSERT_OK(stage_out_verb(asked, kNoProgress));
    EXPECT_EQ(read_text(run_ / "step-1/optimizer"), "x");
    std::filesystem::remove_all(run_);
  }
  const auto nothing = flush_source_verb({{"source", "/no/such"}, {"uid", ::geteuid()}}, kNoProgress);
  ASSERT_TRUE(nothing) << "stage-out says why it can't be sent";
  EXPECT_EQ(nothing->at("written"), 0);
}

// The daemon was restarted between the two, and the job went on.
TEST_F(StageOutVerb, AStateThatIsPublishedIsSentWhateverTheSourceIsNow) {
  json::object asked = request();
  asked["written"] =
      flush_source_verb({{"source", source_.native()}, {"uid", ::geteuid()}}, kNoProgress)->at("written");
  ASSERT_OK(stage_out_verb(asked, kNoProgress));
  write_text(source_ / "shard", "half of the next save");
  const auto changed = stage_out_verb(asked, kNoProgress);
  ASSERT_OK(changed);
  EXPECT_EQ(get_text(*changed, "served_from"), "unchanged");
  EXPECT_EQ(get_count(*changed, "bytes"), 100'000U);
  std::filesystem::remove_all(source_);
  EXPECT_TRUE(stage_out_verb(asked, kNoProgress));
  std::filesystem::remove(run_ / "step-1/shard");
  EXPECT_KIND(stage_out_verb(asked, kNoProgress), Errc::NotFound) << "the copy is not whole";
}

// The rotation of a job that went on meanwhile deletes it.
TEST_F(StageOutVerb, AnOutputsStateThatIsPublishedIsSentAlsoIfItsSourceIsHalfDeleted) {
  staging::test::write_text(source_ / "optimizer", "x");
  json::object asked = request();
  asked["rule"] = "rename";
  asked["path"] = "run/source";
  ASSERT_OK(stage_out(asked, kNoProgress));
  json::object accepted = asked;
  accepted["written"] = staging::totals_of(source_).written;
  std::filesystem::remove(source_ / "optimizer");
  const auto again = stage_out_verb(accepted, kNoProgress);
  ASSERT_OK(again);
  EXPECT_EQ(get_text(*again, "state"), "ready");
  EXPECT_EQ(get_text(*again, "served_from"), "unchanged");
  const auto rest = stage_out(asked, kNoProgress);
  ASSERT_OK(rest);
  EXPECT_EQ(get_text(*rest, "state"), "failed") << "the rest that is there now";
}

// It may take minutes while a job writes to that file system.
TEST_F(StageOutVerb, WhatIsKnownToBeOnTheDriveIsNotFlushedAgain) {
  const json::object first{{"source", source_.native()}, {"uid", ::geteuid()}};
  const auto flushed = flush_source_verb(first, kNoProgress);
  ASSERT_TRUE(flushed && flushed->contains("identity"));
  json::object again = first;
  again["on_drive"] = flushed->at("identity");
  const auto answers_without_flush = [](const json::object& asked) {
    constexpr int kFlush[] = {SYS_syncfs};
    const auto work = [&] {
      const auto refuse = [](const test::FileCall&) { return std::optional<long>(-EIO); };
      if (!test::intercept_calls(kFlush, refuse).empty()) return 10;
      return flush_source_verb(asked, kNoProgress) ? 0 : 1;
    };
    return run_and_kill(work, std::chrono::seconds(60));
  };
  const int status = answers_without_flush(first);
  if (status == 10) GTEST_SKIP() << "system calls can't be intercepted here";
  EXPECT_EQ(status, 1);
  EXPECT_EQ(answers_without_flush(again), 0);
  // With the same size and modification time, as after a restore: other bytes, maybe not on the drive.
  const auto written = std::filesystem::last_write_time(source_ / "shard");
  write_text(source_ / "shard", noise(100'000, 2));
  std::filesystem::last_write_time(source_ / "shard", written);
  const auto restored = flush_source_verb(again, kNoProgress);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->at("written"), flushed->at("written"));
  EXPECT_NE(restored->at("identity"), flushed->at("identity"));
}

}  // namespace
}  // namespace spark::workers
