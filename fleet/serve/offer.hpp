// A copy on this host that peers may read units from: one in progress, or a published one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fleet/adopted/folder.hpp"
#include "fleet/board/board.hpp"
#include "fleet/protocol/layout.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/protocol/unit_body.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"

namespace spark::fleet {

struct UnitBody {
  std::span<const std::byte> bytes;            // within the caller's buffer
  std::optional<staging::Digest> piece, file;  // see AnswerHead, also for the next field
  bool is_plain = false;
};

class Offer {
 public:
  virtual ~Offer() = default;
  virtual SetState state() const = 0;  // the caller fills in `node`
  // NotFound: not available, or no longer. Thread-safe.
  virtual Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const = 0;
  virtual void note_member(NodeId /*node*/) {}
  virtual std::uint64_t files() const = 0;  // in its list, which is in memory
  virtual bool is_current() const = 0;      // false: look it up again
  // The published copy, or the manifest of an adopted folder; empty: still in progress.
  virtual std::filesystem::path copy() const { return {}; }
};

// Of the set that a worker is staging; None if the worker has ended.
SetState state_of(const Board& board);

// For a worker that is staging the set. NotFound if there is none.
Result<std::shared_ptr<Offer>> offer_of_board(const std::filesystem::path& boards, const std::string& set);

// For a published copy, with its manifest and its hash.
Result<std::shared_ptr<Offer>> offer_of_copy(const std::filesystem::path& copy,
                                             const std::filesystem::path& manifest, std::string hash);

// For an adopted folder, with its manifest (see offer_file) and its hash. NotFound if a file has changed
// since; one that is found to have changed later ends the offer for all.
Result<std::shared_ptr<Offer>> offer_of_folder(const AdoptedFolder& folder,
                                               const std::filesystem::path& manifest, std::string hash);

}  // namespace spark::fleet
