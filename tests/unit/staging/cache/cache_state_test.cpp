// Copies of a volume that another host may write: which state of it they are of, and who gets one that may be
// torn.
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class CacheStateTest : public CacheTest {};

TEST_F(CacheStateTest, ACopyOfADoubtfulSourceIsForThoseAloneWhoAskForOne) {
  write_text(source_.path / "f", "torn");
  source_.is_doubtful = true;
  const auto doubtful = stage();
  ASSERT_OK(doubtful);
  EXPECT_TRUE(open()->list()->front().is_doubtful);
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
  source_.is_doubtful = false;
  const auto sound = stage();
  ASSERT_OK(sound);
  EXPECT_EQ(sound->served_from, ServedFrom::Copied) << "although names, sizes and times are the same";
  EXPECT_EQ(sound->report.unchanged_bytes, 0u) << "it was taken over from the doubtful one";
  EXPECT_FALSE(open()->list()->front().is_doubtful);
}

TEST_F(CacheStateTest, ADoubtfulCopyTakesNoSoundOnesPlace) {
  write_text(source_.path / "f", "sound");
  const auto sound = stage();
  ASSERT_OK(sound);
  write_text(source_.path / "f", "half of");
  source_.is_doubtful = true;
  const auto doubtful = stage();
  ASSERT_OK(doubtful);
  EXPECT_EQ(read_text(doubtful->path / "f"), "half of");
  EXPECT_EQ(std::filesystem::canonical(link()), std::filesystem::canonical(sound->path));
  ASSERT_TRUE(open());  // which puts the links right
  EXPECT_EQ(read_text(link() / "f"), "sound");
  source_.is_doubtful = false;
  write_text(source_.path / "f", "whole");
  const auto later = stage();
  ASSERT_OK(later);
  EXPECT_EQ(read_text(link() / "f"), "whole");
  EXPECT_FALSE(std::filesystem::exists(doubtful->path));
  EXPECT_FALSE(std::filesystem::exists(sound->path));
}

TEST_F(CacheStateTest, ASourceThatIsNotWhatItWasAfterTheLastReadIsNotPublishedAndNotGoneOnWith) {
  write_text(source_.path / "f", "torn");
  source_.state = "superblock 1";
  source_.is_still_so = [] { return fail(Errc::Unavailable, "another host has begun to write"); };
  EXPECT_KIND(stage(), Errc::Unavailable);
  EXPECT_TRUE(open()->list()->empty());
  source_.is_still_so = [] { return Result<>{}; };
  source_.state = "superblock 2";
  const auto whole = stage();
  ASSERT_OK(whole);
  EXPECT_EQ(whole->report.resumed_bytes, 0u) << "what was read while somebody wrote was taken over";
}

TEST_F(CacheStateTest, APartialCopyOfTheSameStateIsGoneOnWith) {
  write_text(source_.path / "f", "whole");
  source_.state = "superblock 1";
  source_.is_still_so = [] { return fail(Errc::Cancelled, "cut short"); };
  EXPECT_KIND(stage(), Errc::Cancelled);
  source_.is_still_so = [] { return Result<>{}; };
  EXPECT_EQ(stage()->report.resumed_bytes, 5u);
}

TEST_F(CacheStateTest, TheGenerationOfTheSourceIsRecordedAndMovesOnWithWhatIsFoundUnchanged) {
  write_text(source_.path / "f", "one");
  source_.generation = 6;
  ASSERT_OK(stage());
  EXPECT_EQ(open()->list()->front().source_generation, 6u);
  source_.generation = 7;
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
  EXPECT_EQ(open()->list()->front().source_generation, 7u);
  source_.generation = 0;  // not known now
  ASSERT_OK(stage());
  EXPECT_EQ(open()->list()->front().source_generation, 7u);
  std::filesystem::remove_all(config_.state_dir);
  EXPECT_EQ(open()->list()->front().source_generation, 6u) << "as the manifest has it: when it was copied";
}

// --- a request's hold

TEST_F(CacheTest, WhatIsStagedForARequestIsHeldBeforeItsLockIsReleased) {
  write_text(source_.path / "f", "x");
  for (const char* hold : {"copied", "served"}) {
    source_.hold = hold;
    ASSERT_OK(stage());
    EXPECT_KIND(open()->evict("set"), Errc::Refused);
  }
  EXPECT_EQ(catalog()->leases()->size(), 2U);
  ASSERT_OK(catalog()->remove_lease("copied"));
  ASSERT_OK(catalog()->remove_lease("served"));
  ASSERT_OK(open()->evict("set"));
}

}  // namespace
}  // namespace spark::staging
