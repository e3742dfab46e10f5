// Hosts of unequal speed, in virtual time: none waits for a slow one, and the source is read once.
#include "fleet/schedule/end_game.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "fleet/schedule/schedule.hpp"
#include "tests/unit/fleet/schedule/units.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace spark::fleet::test;
using namespace std::chrono_literals;

namespace {

struct Speed {
  double units_a_second;  // from the source, all lanes together
  unsigned lanes = 4;
};
constexpr Speed kFast{50}, kHalf{25}, kOneIn8Seconds{0.125, 1};
constexpr auto kFetch = 20ms;  // time of a unit from a peer

// A host that hears each peer every 250 ms, like a real one, at its own moments.
struct Host {
  struct UnderWay {
    Choice choice;
    SteadyTime until;
  };
  Host(NodeId node, Speed speed, std::size_t peers, std::size_t units)
      : schedule(node, peers, 4),
        state{SetState::Kind::Staging,  node, std::vector<UnitState>(units, UnitState::Absent), units, {},
              SetState::Reads::Normally},
        speed(speed) {
    schedule.reads_as(SetState::Reads::Normally, kNow);
  }

  void go(SteadyTime now) {
    std::erase_if(under_way, [&](const UnderWay& one) {
      if (one.until > now) return false;
      state.units[one.choice.unit] = UnitState::HasPiece;
      schedule.done(one.choice, now);
      return true;
    });
    for (unsigned lane = 0; under_way.size() < speed.lanes && lane < speed.lanes; ++lane) {
      const auto choice = schedule.next(lane % 2 == 1 ? From::Peers : From::Source, now);
      if (!choice) continue;
      auto takes = std::chrono::milliseconds(kFetch);
      if (!choice->peer) {
        EXPECT_TRUE(schedule.is_still_mine(*choice, now));
        state.units[choice->unit] = UnitState::Reading;
        ++read[choice->why];
        takes = std::chrono::milliseconds(static_cast<int>(1000 * speed.lanes / speed.units_a_second));
      }
      under_way.push_back({*choice, now + takes});
    }
  }
  bool is_done() const { return schedule.is_empty(); }

  Schedule schedule;
  SetState state;
  Speed speed;
  std::vector<UnderWay> under_way;
  std::map<Why, std::size_t> read;
};

class Fleet {
 public:
  Fleet(const std::vector<Speed>& speeds, std::size_t units, std::size_t units_of_file = 16) : units_(units) {
    for (std::size_t i = 0; i < speeds.size(); ++i)
      hosts_.push_back(std::make_unique<Host>(1'000 + 77 * i * i + i, speeds[i], speeds.size() - 1, units));
    for (std::size_t i = 0; i < hosts_.size(); ++i) hear(i, kNow);
    for (const auto& host : hosts_) {
      for (std::size_t first = 0; first < units; first += units_of_file) {
        std::vector<std::uint64_t> file(std::min(units_of_file, units - first));
        std::iota(file.begin(), file.end(), first);
        host->schedule.add(file);
      }
    }
  }

  // The time until all that are at least `fast` have everything.
  std::chrono::milliseconds run(double fast) {
    const auto is_awaited = [&](const auto& host) {
      return host->speed.units_a_second >= fast && !host->is_done();
    };
    SteadyTime now = kNow;
    for (int step = 0; std::ranges::any_of(hosts_, is_awaited) && now < kNow + 1h; ++step, now += 10ms) {
      for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (step % 25 == static_cast<int>(7 * i % 25)) hear(i, now);
        hosts_[i]->go(now);
      }
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - kNow);
  }

  std::size_t reads() const {
    std::size_t sum = 0;
    for (const auto& host : hosts_)
      for (const auto& [why, count] : host->read) sum += count;
    return sum;
  }
  std::size_t reads_of_slow() const {
    std::size_t sum = 0;
    for (const auto& host : hosts_)
      if (const auto found = host->read.find(Why::Slow); found != host->read.end()) sum += found->second;
    return sum;
  }
  const Host& host(std::size_t index) const { return *hosts_[index]; }

 private:
  std::size_t units_;
  std::vector<std::unique_ptr<Host>> hosts_;

  void hear(std::size_t self, SteadyTime now) {
    for (std::size_t i = 0, peer = 0; i < hosts_.size(); ++i)
      if (i != self) hosts_[self]->schedule.heard(peer++, hosts_[i]->state, now);
  }
};

// Each alone would need 8 s.
TEST(EndGame, NoHostWaitsForTheShareOfASlowOne) {
  Fleet fleet({kOneIn8Seconds, kFast, kFast, kFast}, 400);
  EXPECT_LT(fleet.run(kFast.units_a_second), 1min);
  EXPECT_LE(fleet.reads(), 400 * 1.05);
  EXPECT_GT(fleet.reads_of_slow(), 80U);
  EXPECT_FALSE(fleet.host(0).read.contains(Why::Slow));
}

TEST(EndGame, TheShareOfAHostThatIsSlowButSteadyIsReadByTheOthers) {
  Fleet fleet({{2}, kFast, kFast, kFast}, 800);
  EXPECT_LT(fleet.run(kFast.units_a_second), 15s) << "100 s at the slow one's pace";
  EXPECT_LE(fleet.reads(), 800 * 1.05);
}

TEST(EndGame, OneOfTwentyIsSlow) {
  std::vector<Speed> speeds(20, kFast);
  speeds[7] = {1};
  Fleet fleet(speeds, 2'000);
  EXPECT_LT(fleet.run(kFast.units_a_second), 30s) << "100 s at the slow one's pace";
  EXPECT_LE(fleet.reads(), 2'000 * 1.05);
}

TEST(EndGame, SeveralSlowHostsLeaveNoShareOfOneToAnother) {
  Fleet fleet({{1}, {1}, kFast, kFast}, 400);
  EXPECT_LT(fleet.run(kFast.units_a_second), 25s);
  EXPECT_LE(fleet.reads(), 400 * 1.05);
}

TEST(EndGame, EqualHostsReadTheSourceOnce) {
  for (const std::size_t hosts : {2U, 4U, 20U}) {
    Fleet fleet(std::vector<Speed>(hosts, kFast), 1'000);
    fleet.run(0);
    EXPECT_EQ(fleet.reads(), 1'000U) << hosts;
  }
}

TEST(EndGame, HostsOfWhichSomeAreTwiceAsFastReadTheSourceOnce) {
  for (const std::size_t hosts : {2U, 4U, 20U}) {
    for (const std::size_t units_of_file : {1U, 16U, 1'500U}) {
      std::vector<Speed> speeds(hosts, kFast);
      for (std::size_t i = 0; i < hosts; i += 2) speeds[i] = kHalf;
      Fleet fleet(speeds, 1'500, units_of_file);
      fleet.run(0);
      EXPECT_EQ(fleet.reads(), 1'500U) << hosts << " hosts, files of " << units_of_file;
    }
  }
}

// It may be about to start.
TEST(EndGame, WhatAnOwnerThatHasNotBegunAnythingOwnsIsLeftToIt) {
  Schedule schedule(kSelf, 1, 4);
  schedule.reads_as(SetState::Reads::Normally, kNow);
  schedule.heard(0, staging_of(kFirst), kNow);
  schedule.add(all_units());
  while (const auto choice = schedule.next(From::Source, kNow)) schedule.done(*choice, kNow);
  for (SteadyTime now = kNow; now < kNow + kStuck; now += 100ms) {
    schedule.heard(0, staging_of(kFirst), now);
    EXPECT_FALSE(schedule.next(From::Source, now));
  }
}

}  // namespace
