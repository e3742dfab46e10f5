#include "fleet/serve/walks.hpp"

#include <fcntl.h>

#include "base/file.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {

std::unique_ptr<Board> Walks::board(const std::string& walk) const {
  auto opened = Board::open(boards_, walk);
  return opened && (*opened)->is_alive() ? std::move(*opened) : nullptr;
}

std::optional<PublishedCopies::Copy> Walks::copy(const std::string& walk) {
  auto found = published_.find_walk(walk);
  if (found) return found;
  published_.look();  // it may have just been published
  return published_.find_walk(walk);
}

SetState Walks::state(const std::string& walk, NodeId from) {
  if (const auto walker = board(walk)) {
    if (from != 0) walker->note_member(from);  // before reading its state, as for units
    return {.kind = SetState::Kind::Staging,
            .units = {walker->unit(0)},
            .unit_count = 1,
            .reads = walker->reads()};
  }
  if (!copy(walk)) return {};
  return {.kind = SetState::Kind::Published, .unit_count = 1};
}

std::optional<std::filesystem::path> Walks::entries(const std::string& walk) {
  const auto walker = board(walk);
  if (walker && has(walker->unit(0))) return Board::entries_of(boards_, walk);
  const auto published = copy(walk);
  return published ? std::optional(published->manifest) : std::nullopt;
}

std::optional<std::filesystem::path> Walks::entries_of_copy(const std::string& hash) {
  auto found = published_.find_content(hash);
  if (!found) published_.look();  // it may have just been published
  if (!found) found = published_.find_content(hash);
  return found ? std::optional(found->manifest) : std::nullopt;
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

std::optional<std::string> Walks::folders(const std::string& walk) {
  const auto published = copy(walk);
  if (!published) return std::nullopt;
  const auto tree = staging::open_tree(published->path);
  auto manifest = staging::ManifestReader::open(published->manifest);
  if (!tree || !manifest) return std::nullopt;
  while (const auto entry = manifest->next()) {
    if (entry->type != staging::EntryType::Folder) continue;
    const UniqueFd folder = staging::open_beneath(*tree, entry->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!folder) return std::nullopt;
    if (entry->lost_attributes || staging::has_kept_attributes(folder.get()).value_or(true))
      return "attributes";
  }
  return manifest->error() ? std::optional<std::string>("plain") : std::nullopt;
}

}  // namespace spark::fleet
