#include "staging/cache/eviction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spark::staging {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes kGB = 1'000'000'000;

Candidate candidate(const std::string& name, Bytes bytes, double seconds, hours idle) {
  Candidate made;
  made.dataset = name;
  made.bytes = bytes;
  made.inodes = 10;
  made.stage_seconds = seconds;
  made.idle = idle;
  return made;
}

TEST(Worth, IsTheSecondsOfStagingThatAByteSaves) {
  EXPECT_DOUBLE_EQ(worth(candidate("a", 10 * kGB, 20, hours(0))), 2e-9);
  EXPECT_DOUBLE_EQ(worth(candidate("a", 10 * kGB, 0, hours(0))), 1e-9) << "not known: as at 1 GB/s";
}

TEST(Worth, HalvesInADayWithoutUse) {
  const double fresh = worth(candidate("a", kGB, 4, hours(0)));
  EXPECT_DOUBLE_EQ(worth(candidate("a", kGB, 4, hours(24))), fresh / 2);
  EXPECT_NEAR(worth(candidate("a", kGB, 4, hours(9 * 24))), fresh / 10, fresh / 1000);
  EXPECT_DOUBLE_EQ(worth(candidate("a", kGB, 4, hours(-5))), fresh) << "a clock that was set back";
}

TEST(Victims, AreTheCheapestToRestageFirst) {
  const std::vector<Candidate> all = {candidate("slow", 10 * kGB, 100, hours(1)),
                                      candidate("fast", 10 * kGB, 3, hours(1)),
                                      candidate("between", 10 * kGB, 20, hours(1))};
  EXPECT_THAT(*choose_victims(all, {5 * kGB, 0}), ElementsAre(1));
  EXPECT_THAT(*choose_victims(all, {15 * kGB, 0}), ElementsAre(1, 2));
}

TEST(Victims, AreUnrequestedCopiesBeforePrefetchedOnes) {
  std::vector<Candidate> all = {candidate("prefetched", 10 * kGB, 1, hours(100)),
                                candidate("dear", 10 * kGB, 1000, hours(0))};
  all[0].is_prefetched = true;
  EXPECT_THAT(*choose_victims(all, {5 * kGB, 0}), ElementsAre(1));
  EXPECT_THAT(*choose_victims(all, {15 * kGB, 0}), ElementsAre(1, 0));
  all[0].is_useless = true;
  EXPECT_THAT(*choose_victims(all, {5 * kGB, 0}), ElementsAre(0)) << "a damaged copy helps no job";
}

TEST(Victims, AreTheLongestUnusedAtEqualCost) {
  const std::vector<Candidate> all = {candidate("used", kGB, 1, hours(1)),
                                      candidate("old", kGB, 1, hours(48))};
  EXPECT_THAT(*choose_victims(all, {kGB, 0}), ElementsAre(1));
}

TEST(Victims, AreDamagedCopiesBeforeAllOthers) {
  std::vector<Candidate> all = {candidate("fast", kGB, 1, hours(1)), candidate("broken", kGB, 900, hours(0))};
  all[1].is_useless = true;
  EXPECT_THAT(*choose_victims(all, {kGB, 0}), ElementsAre(1));
}

TEST(Victims, AreNoMoreThanNecessary) {
  const std::vector<Candidate> all = {candidate("small", kGB, 1, hours(1)),
                                      candidate("large", 10 * kGB, 20, hours(1))};
  EXPECT_THAT(*choose_victims(all, {5 * kGB, 0}), ElementsAre(1)) << "the small one would not be enough";
}

TEST(Victims, AreChosenForInodesToo) {
  std::vector<Candidate> all = {candidate("few", 10 * kGB, 1, hours(1)),
                                candidate("many", kGB, 100, hours(1))};
  all[1].inodes = 1000;
  EXPECT_THAT(*choose_victims(all, {0, 500}), ElementsAre(1));
  EXPECT_FALSE(choose_victims(all, {0, 5000}));
}

TEST(Victims, AreNoneIfAllTogetherAreNotEnough) {
  const std::vector<Candidate> all = {candidate("a", kGB, 1, hours(1)), candidate("b", kGB, 1, hours(1))};
  EXPECT_FALSE(choose_victims(all, {3 * kGB, 0}));
  EXPECT_FALSE(choose_victims({}, {1, 0}));
  EXPECT_THAT(*choose_victims(all, {}), IsEmpty());
}

}  // namespace
}  // namespace spark::staging
