// Walks of volumes that this host can give to peers: of a worker that stages, or of a published copy.
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

  // As of a set with one unit; `from`: a host that wants it, 0: none. Any thread.
  SetState state(const std::string& walk, NodeId from);
  std::optional<std::filesystem::path> entries(const std::string& walk);  // a manifest
  std::optional<std::string> notes(const std::string& walk);
  std::optional<std::string> folders(const std::string& walk);  // "plain" | "attributes"

 private:
  std::filesystem::path boards_;
  PublishedCopies& published_;

  std::unique_ptr<Board> board(const std::string& walk) const;  // of a worker that is alive
  std::optional<PublishedCopies::Copy> copy(const std::string& walk);
};

}  // namespace spark::fleet
