#include "fleet/serve/walks.hpp"

#include "base/file.hpp"

namespace spark::fleet {

std::unique_ptr<Board> Walks::board(const std::string& walk) const {
  auto opened = Board::open(boards_, walk);
  return opened && (*opened)->is_alive() ? std::move(*opened) : nullptr;
}

std::optional<PublishedCopies::Copy> Walks::copy(const std::string& walk) {
  auto found = published_.find_walk(walk);
  if (found) return found;
  published_.look();  // it may have been published this moment
  return published_.find_walk(walk);
}

SetState Walks::state(const std::string& walk, NodeId from) {
  SetState state;
  state.unit_count = 1;
  if (const auto walker = board(walk)) {
    if (from != 0) walker->note_member(from);  // before its state is looked at, as for units
    state.kind = SetState::Kind::Staging;
    state.units = {walker->unit(0)};
  } else if (copy(walk)) {
    state.kind = SetState::Kind::Published;
  } else {
    return {};
  }
  return state;
}

std::optional<std::filesystem::path> Walks::entries(const std::string& walk) {
  const auto walker = board(walk);
  if (walker && has(walker->unit(0))) return Board::entries_of(boards_, walk);
  const auto published = copy(walk);
  return published ? std::optional(published->manifest) : std::nullopt;
}

std::optional<std::string> Walks::notes(const std::string& walk) {
  const auto walker = board(walk);
  if (walker && has(walker->unit(0))) {
    auto text = read_file(Board::notes_of(boards_, walk));
    return text ? std::optional(std::move(*text)) : std::nullopt;
  }
  const auto published = copy(walk);
  return published ? std::optional(published->row.source.notes) : std::nullopt;
}

}  // namespace spark::fleet
