// Which host reads a unit if some hosts read slowly, or have no source.
#include <gtest/gtest.h>

#include <map>

#include "fleet/schedule/schedule.hpp"
#include "tests/unit/fleet/schedule/units.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace spark::fleet::test;
using namespace std::chrono_literals;
using Reads = SetState::Reads;

namespace {

// Takes all units that are to be read from the source now, and counts the reasons.
std::map<Why, std::size_t> reads_of(Schedule& schedule, SteadyTime now) {
  std::map<Why, std::size_t> taken;
  while (const auto choice = schedule.next(From::Source, now)) {
    EXPECT_FALSE(choice->peer);
    if (choice->peer) break;
    ++taken[choice->why];
  }
  return taken;
}

// The number of hosts that read each unit, of hosts that all see each other at their start.
std::vector<int> readers_among(const std::vector<Reads>& hosts) {
  const NodeId nodes[] = {kSelf, kFirst, kSecond, 44, 55};
  std::vector<int> readers(kUnits);
  for (std::size_t self = 0; self < hosts.size(); ++self) {
    Schedule schedule(nodes[self], hosts.size() - 1, 4);
    schedule.reads_as(hosts[self], kNow);
    for (std::size_t i = 1; i < hosts.size(); ++i) {
      const std::size_t other = (self + i) % hosts.size();
      schedule.heard(i - 1, staging_of(nodes[other], UnitState::Absent, hosts[other]), kNow);
    }
    schedule.add(all_units());
    while (const auto choice = schedule.next(From::Source, kNow)) ++readers[choice->unit];
  }
  return readers;
}

const std::vector<int> kEachOnce(kUnits, 1);

TEST(SlowHosts, AHostReadsTheShareOfASlowOneAtOnce) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::Absent, Reads::Slowly), kNow);
  schedule.add(all_units());
  EXPECT_EQ(reads_of(schedule, kNow), (std::map<Why, std::size_t>{{Why::Owner, kUnits}}));
}

TEST(SlowHosts, EachUnitIsReadByOneOfTheHostsThatReadNormally) {
  EXPECT_EQ(readers_among({Reads::Normally, Reads::Slowly}), kEachOnce);
  EXPECT_EQ(readers_among({Reads::Normally, Reads::Slowly, Reads::Normally, Reads::Slowly}), kEachOnce);
}

TEST(SlowHosts, AFleetOfSlowHostsSharesTheReads) {
  EXPECT_EQ(readers_among({Reads::Slowly}), kEachOnce);
  EXPECT_EQ(readers_among({Reads::Slowly, Reads::Slowly, Reads::Slowly}), kEachOnce);
}

TEST(SlowHosts, AHostWithoutItsVolumeOwnsNothing) {
  EXPECT_EQ(readers_among({Reads::Normally, Reads::Never}), kEachOnce);
  EXPECT_EQ(readers_among({Reads::Slowly, Reads::Never, Reads::Slowly}), kEachOnce);
  EXPECT_EQ(readers_among({Reads::Never, Reads::Never}), std::vector<int>(kUnits, 0));
}

TEST(SlowHosts, ASlowHostReadsItsShareWhenTheOthersAreSilentEndedOrStuck) {
  const auto with_normal_peer = [] {
    Schedule schedule(kSelf, 1, 4);
    schedule.reads_as(Reads::Slowly, kNow);
    schedule.heard(0, staging_of(kFirst), kNow);
    schedule.add(all_units());
    EXPECT_TRUE(reads_of(schedule, kNow).empty());
    return schedule;
  };
  Schedule silent = with_normal_peer();
  silent.unheard(0, kNow + kSilent);
  EXPECT_EQ(reads_of(silent, kNow + kSilent), (std::map<Why, std::size_t>{{Why::Silent, kUnits}}));
  Schedule ended = with_normal_peer();
  ended.heard(0, {}, kNow);
  EXPECT_EQ(reads_of(ended, kNow), (std::map<Why, std::size_t>{{Why::Gone, kUnits}}));
  Schedule stuck = with_normal_peer();
  stuck.heard(0, staging_of(kFirst), kNow + kStuck);
  EXPECT_EQ(reads_of(stuck, kNow + kStuck), (std::map<Why, std::size_t>{{Why::Stuck, kUnits}}));
}

TEST(SlowHosts, ASlowHostThatEndsIsNoReasonToReadWhatItDidNotOwn) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  schedule.heard(0, staging_of(kFirst, UnitState::Absent, Reads::Slowly), kNow);
  schedule.heard(0, {}, kNow);
  EXPECT_EQ(reads_of(schedule, kNow), (std::map<Why, std::size_t>{{Why::Owner, kUnits}}));
}

TEST(SlowHosts, WhatASlowHostHasIsFetchedFromIt) {
  Schedule schedule(kSelf, 1, 4);
  schedule.heard(0, staging_of(kFirst, UnitState::HasPiece, Reads::Slowly), kNow);
  schedule.add(all_units());
  EXPECT_EQ(schedule.next(From::Source, kNow)->peer, 0U);
}

// It has claimed a unit for each of its lanes, and reads one every 8 s.
TEST(SlowHosts, AUnitThatASlowHostReadsIsWaitedForNoLongerThanForAStuckHost) {
  Schedule schedule(kSelf, 1, 4);
  schedule.add(all_units());
  SetState state = staging_of(kFirst, UnitState::Reading, Reads::Slowly);
  schedule.heard(0, state, kNow);
  EXPECT_TRUE(reads_of(schedule, kNow).empty());
  state.units[0] = UnitState::HasPiece;
  const SteadyTime later = kNow + 8s;
  schedule.heard(0, state, later);
  const auto fetched = schedule.next(From::Source, later);
  ASSERT_TRUE(fetched && fetched->peer);
  schedule.done(*fetched, later);
  EXPECT_TRUE(reads_of(schedule, later).empty());
  schedule.heard(0, state, kNow + kStuck);
  EXPECT_EQ(reads_of(schedule, kNow + kStuck), (std::map<Why, std::size_t>{{Why::Owner, kUnits - 1}}));
}

// As for a walk, which may take long.
TEST(SlowHosts, TheLimitForAReadOfASlowHostStaysWhereAHostIsStuckOnlyLater) {
  Schedule schedule(kSelf, 1, 4, 6 * kStuck);
  schedule.add(all_units());
  const SetState state = staging_of(kFirst, UnitState::Reading, Reads::Slowly);
  schedule.heard(0, state, kNow);
  EXPECT_TRUE(reads_of(schedule, kNow).empty());
  schedule.heard(0, state, kNow + kStuck);
  EXPECT_EQ(reads_of(schedule, kNow + kStuck), (std::map<Why, std::size_t>{{Why::Owner, kUnits}}));
}

TEST(SlowHosts, SlowHostsWaitForEachOthersReadsAsLongAsThereIsProgress) {
  Schedule schedule(kSelf, 1, 4);
  schedule.reads_as(Reads::Slowly, kNow);
  schedule.add(all_units());
  SetState state = staging_of(kFirst, UnitState::Reading, Reads::Slowly);
  schedule.heard(0, state, kNow);
  for (SteadyTime now = kNow; now < kNow + 3 * kStuck; now += 8s) {
    const auto unit = static_cast<std::size_t>((now - kNow) / 8s);
    state.units[unit] = UnitState::HasPiece;
    schedule.heard(0, state, now);
    const auto fetched = schedule.next(From::Source, now);
    ASSERT_TRUE(fetched && fetched->peer) << unit;
    schedule.done(*fetched, now);
    EXPECT_TRUE(reads_of(schedule, now).empty()) << unit;
  }
}

// A host in a simulated exchange, without time for transfers.
struct SimulatedHost {
  SimulatedHost(NodeId node, Reads reads) : node(node), reads(reads), schedule(node, 1, 4) {
    schedule.reads_as(reads, kNow);
  }
  NodeId node;
  Reads reads;
  Schedule schedule;
  SetState state = staging_of(node, UnitState::Absent, reads);

  void go(SteadyTime now) {
    // A slow host gets one unit in a step.
    for (int left = reads == Reads::Slowly ? 1 : 10; left > 0; --left) {
      const auto choice = schedule.next(From::Source, now);
      if (!choice) return;
      state.units[choice->unit] = UnitState::HasPiece;
      schedule.done(*choice, now);
    }
  }
};

// The earlier version takes no notice of the field, and counts the slow host as an owner.
TEST(SlowHosts, WithAHostOfTheEarlierVersionASlowHostCompletesAndSoDoesTheOther) {
  SimulatedHost earlier(kSelf, Reads::Normally), slow(kFirst, Reads::Slowly);
  for (SimulatedHost* host : {&earlier, &slow}) host->schedule.add(all_units());
  SteadyTime now = kNow;
  for (; !earlier.schedule.is_empty() || !slow.schedule.is_empty(); now += 1s) {
    ASSERT_LT(now, kNow + 1h);
    SetState seen = slow.state;
    seen.reads = Reads::Normally;
    earlier.schedule.heard(0, seen, now);
    slow.schedule.heard(0, earlier.state, now);
    earlier.go(now);
    slow.go(now);
  }
}

}  // namespace
