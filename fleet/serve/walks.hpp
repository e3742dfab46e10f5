// Lists of entries that this host can provide to peers: walks of volumes, from a running worker or from a
// published copy, and those of published copies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fleet/board/board.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/serve/published.hpp"

namespace spark::fleet {

class Walks {
 public:
  Walks(std::filesystem::path boards, PublishedCopies& published)
      : boards_(std::move(boards)), published_(published) {}

  // The state of a set with one unit. `from` is a host that wants the walk; 0: none. Thread-safe.
  SetState state(const std::string& walk, NodeId from);
  std::optional<std::filesystem::path> entries(const std::string& walk);  // path of a manifest
  std::optional<std::string> notes(const std::string& walk);
  std::optional<std::string> folders(const std::string& walk);  // "plain" | "attributes"
  // Of a published copy, by its hash.
  std::optional<std::filesystem::path> entries_of_copy(const std::string& hash);

 private:
  std::filesystem::path boards_;
  PublishedCopies& published_;

  std::unique_ptr<Board> board(const std::string& walk) const;  // of a live worker
  std::optional<PublishedCopies::Copy> copy(const std::string& walk);
};

}  // namespace spark::fleet
