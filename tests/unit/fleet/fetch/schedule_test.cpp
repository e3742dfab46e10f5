#include "fleet/fetch/schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

constexpr NodeId kSelf = 11, kFirst = 22, kSecond = 33;
constexpr std::uint64_t kUnits = 60;
const SteadyTime kNow{1h};

std::vector<std::uint64_t> all_units() {
  std::vector<std::uint64_t> units(kUnits);
  std::iota(units.begin(), units.end(), 0);
  return units;
}

SetState staging_of(NodeId node, UnitState each = UnitState::Absent) {
  return {SetState::Kind::Staging, node, std::vector<UnitState>(kUnits, each), kUnits, {}};
}

SetState published_by(NodeId node) {
  return {SetState::Kind::Published, node, {}, kUnits, {}};
}

// Takes all units that are available from the source now.
std::vector<std::uint64_t> take_from_source(Schedule& schedule, SteadyTime now) {
  std::vector<std::uint64_t> taken;
  while (const auto choice = schedule.next(From::Source, now)) {
    EXPECT_FALSE(choice->peer);
    taken.push_back(choice->unit);
  }
  return taken;
}

TEST(Schedule, AloneAHostReadsAllFromTheSource) {
  Schedule schedule(kSelf, 2, 4);
  schedule.add(all_units());
  EXPECT_EQ(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, UnitsThatCanNotBeHadAreLookedAtOnceUntilAHostTellsAnythingNew) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow);
  schedule.add(all_units());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(schedule.next(From::Peers, kNow));
  EXPECT_EQ(schedule.looks(), 2 * kUnits);  // once for each origin
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  EXPECT_TRUE(schedule.next(From::Peers, kNow));
  EXPECT_EQ(schedule.looks(), 2 * kUnits + 1);
}

TEST(Schedule, TakingAllUnitsLooksAtEachAFewTimes) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst), kNow);
  schedule.add(all_units());
  const auto own = take_from_source(schedule, kNow);
  EXPECT_LT(own.size(), kUnits);
  EXPECT_LE(schedule.looks(), 3 * kUnits);
}

TEST(Schedule, OfAFleetEachUnitIsReadByOneHost) {
  const NodeId nodes[] = {kSelf, kFirst, kSecond};
  std::vector<int> readers(kUnits);
  for (int self = 0; self < 3; ++self) {
    Schedule schedule(nodes[self], 2, 4);
    schedule.heard(0, staging_of(nodes[(self + 1) % 3]), kNow);
    schedule.heard(1, staging_of(nodes[(self + 2) % 3]), kNow);
    schedule.add(all_units());
    for (const std::uint64_t unit : take_from_source(schedule, kNow)) ++readers[unit];
  }
  EXPECT_EQ(readers, std::vector<int>(kUnits, 1));
}

TEST(Schedule, WhatAPeerHasOrReadsIsNotReadFromTheSource) {
  Schedule schedule(kSelf, 2, 4);
  schedule.add(all_units());
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow);
  EXPECT_FALSE(schedule.next(From::Source, kNow));
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
}

TEST(Schedule, TheUnitsOfASilentOwnerAreTakenOver) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst), kNow);
  schedule.add(all_units());
  const std::size_t mine = take_from_source(schedule, kNow).size();
  EXPECT_LT(mine, kUnits);
  EXPECT_TRUE(take_from_source(schedule, kNow + kSilent - 1ms).empty());
  EXPECT_EQ(take_from_source(schedule, kNow + kSilent + kLookAgain).size(), kUnits - mine);
}

TEST(Schedule, AnOwnerThatAnswersAndGetsNothingIsNotWaitedForLong) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow);
  schedule.add(all_units());
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow + kStuck);
  EXPECT_EQ(take_from_source(schedule, kNow + kStuck).size(), kUnits);
}

TEST(Schedule, AHostThatHasAskedCountsBeforeItsOwnAnswerIsIn) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  const NodeId asked[] = {kFirst};
  schedule.asked_by(asked, kNow);
  EXPECT_LT(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, APublishedCopyIsReadBeforeTheSource) {
  Schedule schedule(kSelf, 2, 2);
  schedule.add(all_units());
  schedule.heard(0, published_by(kFirst), kNow);
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
  EXPECT_FALSE(schedule.next(From::Source, kNow)) << "so many at once, and no more";
}

TEST(Schedule, AUnitThatAPeerCouldNotSendIsGotElsewhere) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(std::vector<std::uint64_t>{7});
  const auto choice = schedule.next(From::Peers, kNow);
  ASSERT_EQ(choice->peer, 0U);
  schedule.failed(*choice, true);
  const auto again = schedule.next(From::Peers, kNow);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->peer);
  schedule.done(*again);
  EXPECT_TRUE(schedule.is_empty());
}

TEST(Schedule, NothingMoreIsTakenFromAPeerThatSentWrongBytes) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  schedule.blame(0);
  EXPECT_EQ(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, WithoutASourceItWaitsForPeersAndGivesUpWhenNoneHasMore) {
  Schedule schedule(kSelf, 1, 4);
  schedule.without_source(kNow);
  schedule.add(std::vector<std::uint64_t>{7, 8});
  EXPECT_FALSE(schedule.next(From::Source, kNow));
  EXPECT_FALSE(schedule.is_hopeless(kNow + kStuck));
  schedule.heard(0, published_by(kFirst), kNow + kStuck);
  const auto choice = schedule.next(From::Source, kNow + kStuck);
  ASSERT_EQ(choice->peer, 0U);
  schedule.done(*choice);
  EXPECT_FALSE(schedule.is_hopeless(kNow + 2 * kStuck));
  EXPECT_TRUE(schedule.is_hopeless(kNow + 2 * kStuck + 1ms));
}

}  // namespace
