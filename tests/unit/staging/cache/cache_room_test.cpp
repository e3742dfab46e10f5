// Capacity, reservations, and the order of eviction.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <thread>

#include "staging/copy/need.hpp"
#include "tests/unit/staging/cache/room_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(RoomTest, APartialCopyCountsEachUnsharedFileOnce) {
  const std::filesystem::path data = folder_ / "partial/data";
  write_text(folder_ / "generation/f", noise(kMB, 1));
  write_text(data / "own", noise(kMB, 2));
  const Footprint without = footprint_of_partial(folder_ / "partial");
  std::filesystem::create_hard_link(folder_ / "generation/f", data / "taken over");
  EXPECT_EQ(footprint_of_partial(folder_ / "partial").bytes, without.bytes);
  std::filesystem::create_hard_link(data / "own", data / "own again");
  EXPECT_EQ(footprint_of_partial(folder_ / "partial").bytes, without.bytes);
}

TEST_F(RoomTest, WhatCannotBeCountedIsNotTakenAsNothing) {
  EXPECT_EQ(footprint_of(folder_ / "none/there").value().inodes, 0U);
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_KIND(footprint_of(folder_ / "fifo"), Errc::Invalid);
}

TEST_F(RoomTest, ADatasetLargerThanTheCacheIsRefusedImmediately) {
  config_.capacity = 5 * kMB;
  ASSERT_OK(stage("small", kMB));
  const auto never = stage("large", 6 * kMB);
  EXPECT_KIND(never, Errc::NoSpace);
  EXPECT_NE(never.error().what.find("needs 6.00 MB and the whole cache may hold 5.00 MB"), std::string::npos)
      << never.error().what;
  EXPECT_FALSE(std::filesystem::exists(config_.path / ".partial/large"));
  EXPECT_EQ(there(), Names{"small"}) << "nothing was evicted for what can never fit";
}

TEST_F(RoomTest, UsageIsCountedInBlocksAndInodes) {
  config_.capacity = 5 * kMB;
  ASSERT_OK(stage("a", 3 * kMB - 1));
  auto cache = open();
  const auto usage = cache->usage();
  ASSERT_OK(usage);
  EXPECT_EQ(usage->capacity, 5 * kMB);
  EXPECT_EQ(usage->used, 733U * 4096 + 4096);
  EXPECT_EQ(usage->free, 5 * kMB - usage->used);
  EXPECT_EQ(usage->used_inodes, 2U);
}

TEST_F(RoomTest, TheDatasetCheapestToRestageIsEvicted) {
  config_.capacity = 8 * kMB;
  ASSERT_OK(stage("dear", 3 * kMB));
  ASSERT_OK(stage("cheap", 3 * kMB));
  set_cost("dear", 60, std::chrono::hours(1));
  set_cost("cheap", 1, std::chrono::hours(1));
  const auto staged = stage("next", 3 * kMB);
  ASSERT_OK(staged);
  ASSERT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(staged->evicted[0].dataset, "cheap");
  EXPECT_EQ(staged->evicted[0].bytes, 733U * 4096 + 4096);
  EXPECT_EQ(there(), (Names{"dear", "next"}));
  EXPECT_FALSE(std::filesystem::exists(config_.path / "data/cheap"));
}

TEST_F(RoomTest, APrefetchedCopyIsEvictedAfterUnwantedAndBeforeLeasedOnes) {
  config_.capacity = 11 * kMB;
  for (const char* name : {"leased", "prefetched", "unwanted"}) ASSERT_OK(stage(name, 3 * kMB));
  lease("leased", 1);
  lease("prefetched", 1, true);
  set_cost("unwanted", 1000, std::chrono::hours(0));
  const auto first = stage("a", 3 * kMB);
  ASSERT_OK(first);
  EXPECT_EQ(first->evicted.at(0).dataset, "unwanted");
  lease("a", 1);
  const auto second = stage("b", 3 * kMB);
  ASSERT_OK(second);
  EXPECT_EQ(second->evicted.at(0).dataset, "prefetched");
  EXPECT_EQ(catalog()->leases()->size(), 2U) << "its lease went with it";
}

TEST_F(RoomTest, APrefetchEvictsNoHeldCopyAndNamesTheHolders) {
  config_.capacity = 8 * kMB;
  hooks_.room.obstacle = std::chrono::hours(1);
  ASSERT_OK(stage("prefetched", 3 * kMB));
  ASSERT_OK(stage("leased", 3 * kMB));
  lease("prefetched", 1, true);
  lease("leased", 1);
  Source source = make("next", 3 * kMB);
  source.is_prefetch = true;
  const auto refused = stage(source);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("it needs 3.01 MB and the cache holds 6.01 MB of 8.00 MB"),
            std::string::npos)
      << refused.error().what;
  EXPECT_NE(refused.error().what.find("leased by slurm job 12"), std::string::npos) << refused.error().what;
  EXPECT_EQ(there(), (Names{"leased", "prefetched"}));
}

TEST_F(RoomTest, AQueuedPrefetchHasItsSpaceReserved) {
  config_.capacity = 8 * kMB;
  ASSERT_OK(stage("old", 3 * kMB));
  Source source = make("next", 5 * kMB);
  source.is_prefetch = source.only_cached = true;
  const auto reserved = stage(source);
  ASSERT_OK(reserved);
  EXPECT_TRUE(reserved->is_reserved);
  EXPECT_EQ(reserved->evicted.at(0).dataset, "old");
  EXPECT_KIND(stage("other", 5 * kMB), Errc::NoSpace);
  source.only_cached = false;
  const auto staged = stage(source);
  ASSERT_OK(staged);
  EXPECT_FALSE(staged->is_reserved);
}

TEST_F(RoomTest, AStagingIsToldWhichPrefetchesBlockIt) {
  config_.capacity = 8 * kMB;
  Source prefetched = make("next", 5 * kMB);
  prefetched.is_prefetch = prefetched.only_cached = true;
  ASSERT_OK(stage(prefetched));
  Source source = make("wanted", 5 * kMB);
  source.prefetching = {"next"};
  const auto blocked = stage(source);
  ASSERT_OK(blocked);
  EXPECT_EQ(blocked->blocked_by, Names{"next"});
  ASSERT_OK(catalog()->drop_reservation("next"));
  const auto staged = stage(source);
  ASSERT_OK(staged);
  EXPECT_TRUE(staged->blocked_by.empty());
  Source too_large = make("large", 9 * kMB);
  too_large.prefetching = {"next"};
  EXPECT_KIND(stage(too_large), Errc::NoSpace) << "no prefetch ends for what can't fit";
}

TEST_F(RoomTest, LastUseOutweighsCostInTime) {
  config_.capacity = 8 * kMB;
  ASSERT_OK(stage("dear", 3 * kMB));
  ASSERT_OK(stage("cheap", 3 * kMB));
  set_cost("dear", 60, std::chrono::hours(24 * 365));
  set_cost("cheap", 1, std::chrono::hours(0));
  ASSERT_OK(stage("next", 3 * kMB));
  EXPECT_EQ(there(), (Names{"cheap", "next"}));
}

TEST_F(RoomTest, TheStagingDurationIsRecorded) {
  ASSERT_OK(stage("a", kMB));
  EXPECT_GT(catalog()->generations()->front().stage_seconds, 0);
}

TEST_F(RoomTest, NothingIsEvictedIfLeasedAndNeededDatasetsLeaveTooLittle) {
  config_.capacity = 8 * kMB;
  const auto leased = stage("leased", 3 * kMB);
  ASSERT_OK(leased);
  lease("leased", leased->generation);
  ASSERT_OK(stage("needed", 2 * kMB));
  ASSERT_OK(stage("free", kMB));
  Source next = make("next", 5 * kMB);
  next.in_use = {{"needed", 0}};
  const auto refused = stage(next);
  EXPECT_KIND(refused, Errc::NoSpace);
  for (const char* part : {"it needs 5.01 MB and the cache holds 6.02 MB of 8.00 MB",
                           "leased 3.01 MB (leased by slurm job 12), needed 2.01 MB (in use)"}) {
    EXPECT_NE(refused.error().what.find(part), std::string::npos) << refused.error().what;
  }
  EXPECT_EQ(there(), (Names{"free", "leased", "needed"}));
  ASSERT_OK(catalog()->remove_lease("l-leased"));
  ASSERT_OK(stage(next));
  EXPECT_EQ(there(), (Names{"needed", "next"})) << "the one that is enough by itself; the free one fits too";
}

// As with a full state folder: not even the reason can be recorded.
TEST_F(RoomTest, ACopyThatCannotBeEvictedIsNotChosenAgain) {
  config_.capacity = 4 * kMB;
  ASSERT_OK(stage("first", 3 * kMB));
  hooks_.step = [](const char* step) -> Result<> {
    return std::string_view(step) == "unlinked" ? fail(Errc::Failed, "its drive fails") : Result<>();
  };
  fail_in_catalog("INSERT ON troubles");
  const auto refused = stage("second", 3 * kMB);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("it is full"), std::string::npos) << refused.error().what;
}

TEST_F(RoomTest, AnEvictedCopyTakesNoSpaceAlthoughTheCatalogStillHasIt) {
  ASSERT_OK(stage("first", 3 * kMB));
  fail_in_catalog("DELETE ON generations");
  const auto cache = open();
  EXPECT_FALSE(cache->evict("first").has_value());
  EXPECT_EQ(cache->usage()->used_inodes, 0U);
}

TEST_F(RoomTest, AnOlderCopyIsKeptUntilTheNewOneIsReady) {
  config_.capacity = 5 * kMB;
  ASSERT_OK(stage("a", 3 * kMB));
  write_text(folder_ / "source-a/f", noise(3 * kMB, 9));
  const auto refused = stage(Source{"a", folder_ / "source-a", {}, {}, 0});
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("its older copy"), std::string::npos) << refused.error().what;
  EXPECT_EQ(there(), Names{"a"});
}

TEST_F(RoomTest, ANewGenerationNeedsSpaceForChangedFilesOnly) {
  config_.capacity = 5 * kMB;
  const Source source = make("a", 3 * kMB);
  write_text(source.path / "small", "one");
  const auto first = stage(source);
  ASSERT_OK(first);
  lease("a", first->generation);
  write_text(source.path / "small", "two!");
  const auto second = stage(source);
  ASSERT_OK(second);
  EXPECT_GT(second->generation, first->generation);
  EXPECT_LT(open()->usage()->used, 4 * kMB) << "what they share counts once";
}

TEST_F(RoomTest, ADamagedCopyIsEvictedForItsSuccessor) {
  config_.capacity = 5 * kMB;
  const auto staged = stage("a", 3 * kMB);
  ASSERT_OK(staged);
  corrupt(staged->path / "f");
  EXPECT_KIND(open()->verify("a", {}, kQuiet, stop_), Errc::Mismatch);
  const auto again = stage(Source{"a", folder_ / "source-a", {}, {{"a", 0}}, 0});
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Copied);
  ASSERT_OK(open()->verify("a", {}, kQuiet, stop_));
}

TEST_F(RoomTest, ACopyInProgressCountsWithItsFullReservation) {
  config_.capacity = 8 * kMB;
  { open(); }
  ASSERT_OK(catalog()->reserve({"coming", 5 * kMB, 2, process_with(::getpid()), 7}));
  auto usage = open()->usage();
  ASSERT_OK(usage);
  EXPECT_EQ(usage->used, 5 * kMB);
  const auto refused = stage("next", 4 * kMB);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("coming 5.00 MB (being staged)"), std::string::npos)
      << refused.error().what;
  ASSERT_OK(open()->drop_ended_reservations({7}, 9));
  EXPECT_KIND(stage("next", 4 * kMB), Errc::NoSpace);
  ASSERT_OK(open()->drop_ended_reservations({}, 6));
  EXPECT_KIND(stage("next", 4 * kMB), Errc::NoSpace) << "reserved after it was asked what is in progress";
  ASSERT_OK(open()->drop_ended_reservations({}, 7));
  ASSERT_OK(stage("next", 4 * kMB));
}

TEST_F(RoomTest, ConcurrentCopiesDoNotCountOnTheSameSpace) {
  config_.capacity = 8 * kMB;
  const Source sources[] = {make("a", 5 * kMB), make("b", 5 * kMB)};
  { open(); }
  options_.rate.most = 8 * kMB;
  std::vector<pid_t> children;
  for (const Source& source : sources) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto staged = stage(source);
      ::_exit(staged ? 0 : staged.error().kind == Errc::NoSpace ? 5 : 9);
    }
    children.push_back(child);
  }
  int sum = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    sum += WEXITSTATUS(status);
  }
  EXPECT_EQ(sum, 5) << "one is staged, the other one refused before its first byte";
}

TEST_F(RoomTest, AFailedCopyReleasesItsReservationAndItsPartIsEvicted) {
  config_.capacity = 8 * kMB;
  const Source broken = make("broken", 5 * kMB);
  options_.chunk = 64 * kKiB;
  hooks_.before_read = [&](const std::string&, Bytes offset) { stop_ = offset > 3 * kMB; };
  EXPECT_KIND(stage(broken), Errc::Cancelled);
  stop_ = false;
  hooks_.before_read = nullptr;
  EXPECT_TRUE(catalog()->reservations()->empty());
  ASSERT_TRUE(std::filesystem::exists(config_.path / ".partial/broken/data"));
  const auto staged = stage("next", 5 * kMB);
  ASSERT_OK(staged);
  ASSERT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(staged->evicted[0].dataset, "broken");
  EXPECT_FALSE(std::filesystem::exists(config_.path / ".partial/broken"));
}

// Its folder has another name than the dataset, and nothing else is left of it.
TEST_F(RoomTest, ThePartialCopyOfADatasetThatARequestWaitsForStays) {
  config_.capacity = 8 * kMB;
  const Source waiting = make("volume:waiting", 5 * kMB);
  options_.chunk = 64 * kKiB;
  hooks_.before_read = [&](const std::string&, Bytes offset) { stop_ = offset > 3 * kMB; };
  EXPECT_KIND(stage(waiting), Errc::Cancelled);
  stop_ = false;
  hooks_.before_read = nullptr;
  Source next = make("next", 6 * kMB);
  next.in_use = {{"volume:waiting", 0}};
  const auto refused = stage(next);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("volume:waiting"), std::string::npos) << refused.error().what;
  EXPECT_TRUE(std::filesystem::exists(config_.path / ".partial/volume%3awaiting/data"));
  next.in_use.clear();
  ASSERT_OK(stage(next));
}

TEST_F(SmallDriveTest, ForeignFilesCountAndEvictionFreesSpace) {
  std::filesystem::create_directories(config_.path);
  const SmallTmpfs small(config_.path, "size=10m");
  config_.keep_free = kMB;
  ASSERT_OK(stage("a", 4 * kMB));
  ASSERT_OK(stage("b", 4 * kMB));
  set_cost("b", 1000, std::chrono::hours(0));
  write_text(config_.path / "foreign", noise(kMB, 1));
  const auto staged = stage("c", 4 * kMB);
  ASSERT_OK(staged);
  EXPECT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(there(), (Names{"b", "c"}));
  EXPECT_KIND(stage("never", 10 * kMB), Errc::NoSpace);
}

TEST_F(SmallDriveTest, InodesAreCheckedBeforeTheFirstByteAndFreedByEviction) {
  std::filesystem::create_directories(config_.path);
  const SmallTmpfs small(config_.path, "size=10m,nr_inodes=60");
  Source many{"many", folder_ / "many", {}, {}, 0};
  for (int i = 0; i < 55; ++i) write_text(many.path / std::to_string(i), "x");
  const auto refused = stage(many);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("56 inodes"), std::string::npos) << refused.error().what;
  EXPECT_FALSE(std::filesystem::exists(config_.path / ".partial/many"));
  for (int i = 25; i < 55; ++i) std::filesystem::remove(many.path / std::to_string(i));
  ASSERT_OK(stage(many));
  Source others{"others", folder_ / "others", {}, {}, 0};
  for (int i = 0; i < 25; ++i) write_text(others.path / std::to_string(i), "x");
  const auto staged = stage(others);
  ASSERT_OK(staged);
  EXPECT_EQ(staged->evicted.size(), 1U) << "evicted for its inodes";
}

}  // namespace
}  // namespace spark::staging
