// A peer's part in an exchange, as far as this host knows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/clock.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/protocol/set_state.hpp"

namespace spark::fleet {

// Time to wait for an owner that answers but makes no progress, and for a unit that a slow host reads.
inline constexpr std::chrono::milliseconds kStuck{10'000};

struct PeerView {
  using Reads = SetState::Reads;

  SetState state;
  SteadyTime heard_at{}, moved_at{}, rests_until{};
  bool is_silent = false;
  std::uint64_t most_had = 0;  // units, since its state changed
  unsigned changes = 0;        // of its state
  unsigned under_way = 0;
  unsigned failures = 0;  // since the last unit that it sent, also the next
  SteadyTime failing_since{};
  bool is_failing = false, was_failing = false;
  bool is_blamed = false;
  std::optional<Reads> staged;                     // how it read the source when it last staged the set
  std::map<std::uint64_t, SteadyTime> slow_reads;  // units that it reads slowly, since when
  std::set<std::uint64_t> missing;                 // units that it turned out not to have

  void heard(SetState now_there, SteadyTime now);
  bool is_live() const { return state.kind != SetState::Kind::None && !is_blamed && !is_silent; }
  bool delivers() const { return is_live() && !is_failing; }
  bool is_staging() const { return state.kind == SetState::Kind::Staging; }
  UnitState at(std::uint64_t unit) const;
  // True if this host, which reads in the way `here`, waits for the unit that the peer is reading. `stuck` is
  // the time to wait for a peer that makes no progress.
  bool is_awaited(std::uint64_t unit, Reads here, std::chrono::milliseconds stuck, SteadyTime now) const;
  // True if the peer, as it last staged the set, reads this unit rather than `self`.
  bool comes_before(NodeId self, Reads here, std::uint64_t unit) const;
};

// True if a peer has the unit, or this host waits for its read.
bool is_at_one_of(std::span<const PeerView> peers, std::uint64_t unit, SetState::Reads here,
                  std::chrono::milliseconds stuck, SteadyTime now);

}  // namespace spark::fleet
