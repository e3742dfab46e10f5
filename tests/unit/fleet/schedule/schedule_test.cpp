#include "fleet/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include "tests/unit/fleet/schedule/units.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace spark::fleet::test;
using namespace std::chrono_literals;

namespace {

// Takes all units that are available from the source now.
std::vector<std::uint64_t> take_from_source(Schedule& schedule, SteadyTime now) {
  std::vector<std::uint64_t> taken;
  while (const auto choice = schedule.next(From::Source, now)) {
    EXPECT_FALSE(choice->peer);
    taken.push_back(choice->unit);
  }
  return taken;
}

TEST(Schedule, ASingleHostReadsEverythingFromTheSource) {
  Schedule schedule(kSelf, 2, 4);
  schedule.add(all_units());
  EXPECT_EQ(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, UnavailableUnitsAreCheckedOnceUntilAPeerReportsAChange) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow);
  schedule.add(all_units());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(schedule.next(From::Peers, kNow));
  EXPECT_EQ(schedule.looks(), 2 * kUnits);  // once for each origin
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  EXPECT_TRUE(schedule.next(From::Peers, kNow));
  EXPECT_EQ(schedule.looks(), 2 * kUnits + 1);
}

TEST(Schedule, TakingAllUnitsChecksEachAFewTimes) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst), kNow);
  schedule.add(all_units());
  const auto own = take_from_source(schedule, kNow);
  EXPECT_LT(own.size(), kUnits);
  EXPECT_LE(schedule.looks(), 3 * kUnits);
}

TEST(Schedule, EachUnitIsReadByOneHostOfTheFleet) {
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

TEST(Schedule, AUnitThatAPeerHasOrReadsIsNotReadFromTheSource) {
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
  schedule.unheard(0, kNow + kSilent - 1ms);
  EXPECT_TRUE(take_from_source(schedule, kNow + kSilent - 1ms).empty());
  schedule.unheard(0, kNow + kSilent);
  std::size_t taken_over = 0;
  while (const auto choice = schedule.next(From::Source, kNow + kSilent))
    taken_over += choice->why == Why::Silent;
  EXPECT_EQ(taken_over, kUnits - mine);
}

TEST(Schedule, EachUnitOfASilentOwnerIsReadByOneHost) {
  const NodeId nodes[] = {kSelf, kFirst, kSecond};
  std::vector<int> readers(kUnits);
  for (int self = 0; self < 2; ++self) {  // the third is silent
    Schedule schedule(nodes[self], 2, 4);
    schedule.heard(0, staging_of(nodes[1 - self]), kNow + kSilent);
    schedule.heard(1, staging_of(kSecond), kNow);
    schedule.unheard(1, kNow + kSilent);
    schedule.add(all_units());
    for (const std::uint64_t unit : take_from_source(schedule, kNow + kSilent)) ++readers[unit];
  }
  EXPECT_EQ(readers, std::vector<int>(kUnits, 1));
}

TEST(Schedule, AHostResumedAfterAPauseAsksPeersBeforeReadingMore) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst), kNow);
  schedule.add(all_units());
  EXPECT_FALSE(schedule.next(From::Source, kNow + 1h)) << "its peer is not silent: it was not asked";
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow + 1h);
  EXPECT_EQ(schedule.next(From::Source, kNow + 1h)->peer, 0U);
}

TEST(Schedule, AUnitIsFetchedEvenFromAPeerWithoutProgress) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  schedule.add(all_units());
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow + 2 * kStuck);
  EXPECT_EQ(schedule.next(From::Source, kNow + 2 * kStuck)->peer, 0U);
}

TEST(Schedule, APeerThatStagesTheSetIsAskedBeforeOneThatHasPublishedIt) {
  Schedule schedule(kSelf, 2, 4);
  schedule.add(all_units());
  for (const std::size_t staging : {0U, 1U}) {
    schedule.heard(1 - staging, published_by(kFirst), kNow);
    schedule.heard(staging, staging_of(kSecond, UnitState::HasPiece), kNow);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(schedule.next(From::Peers, kNow)->peer, staging);
    EXPECT_EQ(schedule.next(From::Peers, kNow)->peer, 1 - staging) << "the other has no slot left";
    schedule = Schedule(kSelf, 2, 4);
    schedule.add(all_units());
  }
}

TEST(Schedule, AUnitThatOnlyOneHostHasIsFetchedFirst) {
  Schedule schedule(kSelf, 2, 4);
  schedule.add(std::vector<std::uint64_t>{1, 2, 3, 4, 5});
  SetState first = staging_of(kFirst, UnitState::HasPiece), second = staging_of(kSecond, UnitState::HasPiece);
  second.units[4] = UnitState::Absent;
  schedule.heard(0, first, kNow);
  schedule.heard(1, second, kNow);
  EXPECT_EQ(schedule.next(From::Peers, kNow)->unit, 4U);
}

// Reads units from the source that no other host has; the peer has all of its own.
struct Undelivering {
  explicit Undelivering(From from) {
    schedule.add(all_units());
    schedule.heard(0, state, kNow);
    for (std::size_t i = 0; i < kMostUndelivered; ++i) {
      const auto choice = schedule.next(from, kNow);
      EXPECT_TRUE(choice && !choice->peer);
      if (!choice) continue;
      schedule.done(*choice, kNow);
      read.push_back(choice->unit);
    }
    for (std::uint64_t unit = 0; unit < kUnits; ++unit)
      if (owner_of(unit, std::vector{kSelf, kFirst}) == kFirst) state.units[unit] = UnitState::HasPiece;
    schedule.heard(0, state, kNow);
  }
  Schedule schedule{kSelf, 1, 4};
  SetState state = staging_of(kFirst);
  std::vector<std::uint64_t> read;
};

TEST(Schedule, AHostWithUndeliveredUnitsPrefersToFetch) {
  Undelivering host(From::Balanced);
  auto& [schedule, state, read] = host;
  const auto fetched = schedule.next(From::Balanced, kNow);
  ASSERT_EQ(fetched->peer, 0U);
  schedule.done(*fetched, kNow);
  state.units[read.front()] = UnitState::HasPiece;
  schedule.heard(0, state, kNow);
  EXPECT_FALSE(schedule.next(From::Balanced, kNow)->peer);
}

TEST(Schedule, TheSourceComesFirstUntilPeersAreLateToFetch) {
  Undelivering host(From::Source);
  auto& [schedule, state, read] = host;
  EXPECT_FALSE(schedule.next(From::Source, kNow)->peer);
  EXPECT_TRUE(schedule.next(From::Source, kNow + kDelivery)->peer);
  state.units[read.front()] = UnitState::HasPiece;
  schedule.heard(0, state, kNow + kDelivery);
  EXPECT_FALSE(schedule.next(From::Source, kNow + kDelivery)->peer);
}

TEST(Schedule, APeerThatFailsToSendAUnitIsAskedForItAgain) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  schedule.add(all_units());
  const auto choice = schedule.next(From::Peers, kNow);
  schedule.failed(*choice, false, kNow);
  EXPECT_FALSE(schedule.next(From::Source, kNow)) << "neither at once, nor from the source";
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow + kRest);
  EXPECT_EQ(schedule.next(From::Source, kNow + kRest)->peer, 0U);
}

TEST(Schedule, UnitsOfAnAnsweringOwnerWithoutProgressAreTakenOver) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow);
  schedule.add(all_units());
  schedule.heard(0, staging_of(kFirst, UnitState::Reading), kNow + kStuck);
  std::map<Why, std::size_t> read;
  while (const auto choice = schedule.next(From::Source, kNow + kStuck)) ++read[choice->why];
  EXPECT_GT(read[Why::Stuck], 0U);
  EXPECT_EQ(read[Why::Stuck] + read[Why::Owner], kUnits);
}

TEST(Schedule, UnitsOfAnOwnerThatClaimsAUnitAndTakesItBackAreTakenOver) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  for (int i = 0; i < 200; ++i) {
    SetState state = staging_of(kFirst, UnitState::Reading);
    state.units.back() = i % 2 == 0 ? UnitState::HasPiece : UnitState::Absent;
    if (i % 7 == 0) state.kind = SetState::Kind::None;
    schedule.heard(0, std::move(state), kNow + i * 1s);
  }
  std::map<Why, std::size_t> read;
  while (const auto choice = schedule.next(From::Source, kNow + 199s)) ++read[choice->why];
  EXPECT_GT(read[Why::Stuck], 0U);
}

TEST(Schedule, AHostThatAskedCountsAsAPeerBeforeItAnswers) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  const NodeId asked[] = {kFirst};
  schedule.asked_by(asked, kNow);
  EXPECT_LT(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, AHostThatAsksUnderEverNewNumbersKeepsNoUnitFromBeingRead) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  std::size_t read = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::vector<NodeId> asked;
    for (std::uint64_t one = 0; one < 64; ++one) asked.emplace_back(1'000 + i * 64 + one);
    schedule.asked_by(asked, kNow + i * 100ms);
    read += take_from_source(schedule, kNow + i * 100ms).size();
  }
  EXPECT_EQ(read, kUnits);
}

TEST(Schedule, APublishedCopyIsReadBeforeTheSource) {
  Schedule schedule(kSelf, 2, 2);
  schedule.add(all_units());
  schedule.heard(0, published_by(kFirst), kNow);
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
  EXPECT_FALSE(schedule.next(From::Source, kNow)) << "so many at once, and no more";
}

TEST(Schedule, AUnitThatAPeerCannotSendIsReadFromTheSource) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(std::vector<std::uint64_t>{7});
  const auto choice = schedule.next(From::Peers, kNow);
  ASSERT_EQ(choice->peer, 0U);
  schedule.failed(*choice, true, kNow);
  const auto again = schedule.next(From::Peers, kNow);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->peer);
  schedule.done(*again, kNow);
  EXPECT_TRUE(schedule.is_empty());
}

TEST(Schedule, APeerThatSentWrongBytesIsNotUsedAgain) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  schedule.blame(0);
  EXPECT_EQ(take_from_source(schedule, kNow).size(), kUnits);
}

TEST(Schedule, WithoutASourceItWaitsForPeersAndFailsWhenNoneHasMore) {
  Schedule schedule(kSelf, 1, 4);
  schedule.reads_as(SetState::Reads::Never, kNow);
  schedule.add(std::vector<std::uint64_t>{7, 8});
  EXPECT_FALSE(schedule.next(From::Source, kNow));
  EXPECT_FALSE(schedule.is_hopeless(kNow + kStuck));
  schedule.heard(0, published_by(kFirst), kNow + kStuck);
  const auto choice = schedule.next(From::Source, kNow + kStuck);
  ASSERT_EQ(choice->peer, 0U);
  schedule.done(*choice, kNow);
  EXPECT_FALSE(schedule.is_hopeless(kNow + 2 * kStuck));
  EXPECT_TRUE(schedule.is_hopeless(kNow + 2 * kStuck + 1ms));
}

constexpr std::chrono::seconds kPatienceOfRequest{5};

// Fails all requests to peers until the peer counts as failing.
SteadyTime fail_at_peer(Schedule& schedule, SteadyTime now) {
  for (const SteadyTime end = now + kUndelivered; now <= end; now += kPatienceOfRequest) {
    const auto choice = schedule.next(From::Peers, now);
    EXPECT_TRUE(choice && choice->peer);
    if (choice) schedule.failed(*choice, false, now);
  }
  return now;
}

TEST(Schedule, AUnitIsReadFromTheSourceIfTheOnlyPeerThatHasItNeverDeliversIt) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  const SteadyTime now = fail_at_peer(schedule, kNow);
  schedule.heard(0, published_by(kFirst), now);
  const auto choice = schedule.next(From::Balanced, now);
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->peer);
  EXPECT_EQ(choice->why, Why::Refused);
}

TEST(Schedule, APeerThatStagesButNeverDeliversOwnsNoUnits) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  schedule.add(all_units());
  const SteadyTime now = fail_at_peer(schedule, kNow);
  schedule.heard(0, staging_of(kFirst), now);
  EXPECT_EQ(take_from_source(schedule, now).size(), kUnits);
}

TEST(Schedule, APeerThatNeverDeliversIsToldOfOnce) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  SteadyTime now = kNow;
  unsigned told = 0;
  for (int i = 0; i < 40; ++i, now += kStuck) {
    schedule.heard(0, published_by(kFirst), now);
    const auto choice = schedule.next(From::Peers, now);
    ASSERT_TRUE(choice && choice->peer) << i;
    const bool is_new = schedule.failed(*choice, false, now);
    EXPECT_FALSE(is_new && now - kNow < kUndelivered) << i;
    told += is_new ? 1 : 0;
  }
  EXPECT_EQ(told, 1U);
}

TEST(Schedule, APeerThatDeliversAgainCountsAgain) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  SteadyTime now = fail_at_peer(schedule, kNow);
  schedule.heard(0, published_by(kFirst), now);
  const auto rest = schedule.next(From::Peers, now);
  ASSERT_TRUE(rest);
  EXPECT_FALSE(rest->peer) << "it rests";
  now += kStuck;
  const auto again = schedule.next(From::Peers, now);
  ASSERT_TRUE(again && again->peer);
  schedule.done(*again, now);
  schedule.heard(0, published_by(kFirst), now);
  const auto next = schedule.next(From::Balanced, now);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->peer);
}

TEST(Schedule, APeerThatOftenFailsButAlsoDeliversIsNotPassedOver) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  SteadyTime now = kNow;
  for (int i = 0; i < 40; ++i, now += kPatienceOfRequest) {
    schedule.heard(0, published_by(kFirst), now);
    const auto choice = schedule.next(From::Balanced, now);
    ASSERT_TRUE(choice && choice->peer) << i;
    if (i % 4 == 3) {
      schedule.done(*choice, now);
    } else {
      EXPECT_FALSE(schedule.failed(*choice, false, now));
    }
  }
}

TEST(Schedule, RequestsThatFailTogetherCountAsOneFailure) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, published_by(kFirst), kNow);
  schedule.add(all_units());
  std::vector<Choice> together;
  for (int i = 0; i < 4; ++i) together.push_back(schedule.next(From::Peers, kNow).value());
  for (const Choice& choice : together) schedule.failed(choice, false, kNow);
  EXPECT_TRUE(schedule.next(From::Balanced, kNow + kRest)->peer);
}

}  // namespace
