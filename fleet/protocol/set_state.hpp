// The state of a set on a host, as its answer to a peer: one line of JSON, then two bits for each unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "fleet/protocol/owner.hpp"

namespace spark::fleet {

// HasPiece: the unit has its own digest, computed when it was read from the source. HasFile: a piece of a
// file for which only the digest of the whole file is known.
enum class UnitState : std::uint8_t { Absent, Reading, HasPiece, HasFile };

inline bool has(UnitState state) {
  return state == UnitState::HasPiece || state == UnitState::HasFile;
}

struct SetState {
  enum class Kind { None, Staging, Published };
  // Slowly: its staging has a limit or a low priority, so hosts that read normally read its share as well.
  // Never: its volume is away.
  enum class Reads : std::uint8_t { Normally, Slowly, Never };
  Kind kind = Kind::None;
  NodeId node = 0;                 // the answering host
  std::vector<UnitState> units{};  // only for Staging: one for each unit
  std::uint64_t unit_count = 0;    // for Staging and Published
  std::string hash{};              // for Published: hash of the copy; empty: not known yet
  Reads reads = Reads::Normally;   // for Staging: how it reads the source
  bool operator==(const SetState&) const = default;
};

std::string to_text(const SetState& state);
// `most` is the number of units in the reader's own walk; an answer with another number belongs to another
// set. Invalid if the text was not made by to_text().
Result<SetState> parse_set_state(std::string_view text, std::uint64_t most);

}  // namespace spark::fleet
