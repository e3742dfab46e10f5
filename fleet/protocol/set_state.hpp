// How much of a set a host has, as its answer to a peer: one line of JSON, then two bits for each unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "fleet/protocol/owner.hpp"

namespace spark::fleet {

// HasPiece: a unit whose own digest was taken when it was read from the source. HasFile: a piece of a file of
// which only the digest of the whole is known.
enum class UnitState : std::uint8_t { Absent, Reading, HasPiece, HasFile };

inline bool has(UnitState state) {
  return state == UnitState::HasPiece || state == UnitState::HasFile;
}

struct SetState {
  enum class Kind { None, Staging, Published };
  Kind kind = Kind::None;
  NodeId node = 0;               // that answers
  std::vector<UnitState> units;  // Staging: of all; else none
  std::uint64_t unit_count = 0;  // Staging, Published
  std::string hash;              // Published: of the copy; empty: not known yet
  bool operator==(const SetState&) const = default;
};

std::string to_text(const SetState& state);
// `most`: units that the reader's own walk has; an answer with another number is of another set. Invalid: not
// what to_text gives.
Result<SetState> parse_set_state(std::string_view text, std::uint64_t most);

}  // namespace spark::fleet
