// A small set of units, and the states of hosts in its exchange.
#pragma once

#include <numeric>
#include <vector>

#include "base/clock.hpp"
#include "fleet/protocol/set_state.hpp"

namespace spark::fleet::test {

inline constexpr NodeId kSelf = 11, kFirst = 22, kSecond = 33;
inline constexpr std::uint64_t kUnits = 60;
inline const SteadyTime kNow{std::chrono::hours(1)};

inline std::vector<std::uint64_t> all_units() {
  std::vector<std::uint64_t> units(kUnits);
  std::iota(units.begin(), units.end(), 0);
  return units;
}

inline SetState staging_of(NodeId node, UnitState each = UnitState::Absent,
                           SetState::Reads reads = SetState::Reads::Normally) {
  return {SetState::Kind::Staging, node, std::vector<UnitState>(kUnits, each), kUnits, {}, reads};
}

inline SetState published_by(NodeId node) {
  return {SetState::Kind::Published, node, {}, kUnits, {}};
}

}  // namespace spark::fleet::test
