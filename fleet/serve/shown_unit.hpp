// Reads a unit of a copy in progress while its worker may withdraw it.
#pragma once

#include "base/result.hpp"
#include "fleet/board/board.hpp"
#include "fleet/serve/offer.hpp"

namespace spark::fleet {

// A unit as a board shows it. A pack has no digest of its own.
struct ShownUnit {
  UnitState state = UnitState::Absent;
  staging::Digest digest{};
  bool operator==(const ShownUnit&) const = default;
};

inline ShownUnit shown_on(const Board& board, std::uint64_t unit) {
  const bool is_piece = unit < board.size().pieces;
  return {board.unit(unit), is_piece ? board.digest(unit) : staging::Digest{}};
}

// `read` reads the unit's content. NotFound if the board does not have the unit before and after it: a worker
// withdraws a unit before it changes the content.
template <class Read>
Result<UnitBody> read_as_shown(const Board& board, std::uint64_t unit, const Read& read) {
  const ShownUnit shown = shown_on(board, unit);
  if (!has(shown.state)) return fail(Errc::NotFound, "this host does not have that unit");
  Result<UnitBody> body = read();
  if (!body) return body;
  if (shown_on(board, unit) != shown) return fail(Errc::NotFound, "this host no longer has that unit");
  if (unit < board.size().pieces)
    (shown.state == UnitState::HasPiece ? body->piece : body->file) = shown.digest;
  return body;
}

}  // namespace spark::fleet
