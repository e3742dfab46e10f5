// Copies of a volume that another host may write: the state that a copy belongs to, and requests that accept
// a possibly torn one.
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class CacheStateTest : public CacheTest {};

TEST_F(CacheStateTest, ADoubtfulCopyIsServedOnlyToRequestsThatAllowOne) {
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

TEST_F(CacheStateTest, ADoubtfulCopyDoesNotReplaceASoundOne) {
  write_text(source_.path / "f", "sound");
  const auto sound = stage();
  ASSERT_OK(sound);
  write_text(source_.path / "f", "half of");
  source_.is_doubtful = true;
  const auto doubtful = stage();
  ASSERT_OK(doubtful);
  EXPECT_EQ(read_text(doubtful->path / "f"), "half of");
  EXPECT_EQ(std::filesystem::canonical(link()), std::filesystem::canonical(sound->path));
  ASSERT_TRUE(open());  // open() corrects the links
  EXPECT_EQ(read_text(link() / "f"), "sound");
  source_.is_doubtful = false;
  write_text(source_.path / "f", "whole");
  const auto later = stage();
  ASSERT_OK(later);
  EXPECT_EQ(read_text(link() / "f"), "whole");
  EXPECT_FALSE(std::filesystem::exists(doubtful->path));
  EXPECT_FALSE(std::filesystem::exists(sound->path));
}

TEST_F(CacheStateTest, ASourceThatChangedDuringTheCopyIsNeitherPublishedNorResumed) {
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

TEST_F(CacheStateTest, APartialCopyOfTheSameStateIsResumed) {
  write_text(source_.path / "f", "whole");
  source_.state = "superblock 1";
  source_.is_still_so = [] { return fail(Errc::Cancelled, "cut short"); };
  EXPECT_KIND(stage(), Errc::Cancelled);
  source_.is_still_so = [] { return Result<>{}; };
  EXPECT_EQ(stage()->report.resumed_bytes, 5u);
}

TEST_F(CacheStateTest, TheSourcesGenerationIsRecordedAndUpdatedIfUnchanged) {
  write_text(source_.path / "f", "one");
  source_.generation = 6;
  ASSERT_OK(stage());
  EXPECT_EQ(open()->list()->front().source_generation, 6u);
  source_.generation = 7;
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
  EXPECT_EQ(open()->list()->front().source_generation, 7u);
  source_.generation = 0;  // unknown now
  ASSERT_OK(stage());
  EXPECT_EQ(open()->list()->front().source_generation, 7u);
  std::filesystem::remove_all(config_.state_dir);
  EXPECT_EQ(open()->list()->front().source_generation, 6u) << "as the manifest has it: when it was copied";
}

// --- a repeated request for a state that the copy was made of

class CacheSameStateTest : public CacheTest {
 protected:
  CacheSameStateTest() {
    write_text(source_.path / "f", "one");
    source_.state = "superblock 1";
    source_.is_still_so = [] { return Result<>{}; };
  }
  // A change that any walk of the source would find.
  void change_the_source_behind_its_back() { write_text(source_.path / "g", "two"); }
};

TEST_F(CacheSameStateTest, ACopyOfTheSameStateIsServedWithoutAWalkOfTheSource) {
  ASSERT_OK(stage());
  change_the_source_behind_its_back();
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
  EXPECT_EQ(again->report.files, 1u);
  EXPECT_EQ(again->report.bytes, 3u);
  EXPECT_EQ(again->report.hash, open()->list()->front().hash);
  EXPECT_TRUE(again->report.unchanged);
}

TEST_F(CacheSameStateTest, AnotherStateIsWalkedOnceAndRemembered) {
  ASSERT_OK(stage());
  source_.state = "superblock 2";
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
  change_the_source_behind_its_back();
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache) << "the state that was looked at was not remembered";
  source_.state = "superblock 1";
  EXPECT_EQ(stage()->served_from, ServedFrom::Copied);
}

TEST_F(CacheSameStateTest, AChangedDatasetDefinitionCausesAWalk) {
  ASSERT_OK(stage());
  change_the_source_behind_its_back();
  source_.exclude = {"f"};
  EXPECT_EQ(read_text(stage()->path / "g"), "two");
  write_text(source_.path / "h", "three");
  options_.links = OutsideLinks::Copy;
  EXPECT_EQ(read_text(stage()->path / "h"), "three");
  source_.within = "elsewhere";
  write_text(source_.path / "i", "four");
  EXPECT_EQ(read_text(stage()->path / "i"), "four");
}

TEST_F(CacheSameStateTest, AStateThatHasChangedIsNotServedFromTheCache) {
  ASSERT_OK(stage());
  change_the_source_behind_its_back();
  source_.is_still_so = [] { return fail(Errc::Unavailable, "another host has begun to write"); };
  EXPECT_KIND(stage(), Errc::Unavailable);
}

TEST_F(CacheSameStateTest, ADamagedCopyIsStagedAgainDespiteTheSameState) {
  const auto staged = stage();
  ASSERT_OK(staged);
  corrupt(staged->path / "f");
  EXPECT_KIND(open()->verify("set", options_, kQuiet, stop_), Errc::Mismatch);
  EXPECT_EQ(stage()->served_from, ServedFrom::Copied);
}

TEST_F(CacheSameStateTest, ACopyWritableForJobsIsWalkedEachTime) {
  config_.served_read_only = false;
  ASSERT_OK(stage());
  change_the_source_behind_its_back();
  EXPECT_EQ(stage()->served_from, ServedFrom::Copied);
}

TEST_F(CacheSameStateTest, WarningsOfAWalkAreRepeatedEachTime) {
  ASSERT_EQ(::mkfifo((source_.path / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("../elsewhere", source_.path / "out");
  const auto first = stage();
  ASSERT_OK(first);
  ASSERT_EQ(first->report.skipped.size(), 1u);
  ASSERT_EQ(first->report.outside_links, 1u);
  change_the_source_behind_its_back();
  const auto again = stage();
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
  EXPECT_EQ(again->report.skipped, first->report.skipped);
  EXPECT_EQ(again->report.outside_links, 1u);
}

TEST_F(CacheSameStateTest, ARebuiltCatalogKnowsNoState) {
  ASSERT_OK(stage());
  std::filesystem::remove_all(config_.state_dir);
  ASSERT_TRUE(open());
  change_the_source_behind_its_back();
  EXPECT_EQ(stage()->served_from, ServedFrom::Copied);
}

// --- a request's hold

TEST_F(CacheTest, ARequestsLeaseIsTakenBeforeItsLockIsReleased) {
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
