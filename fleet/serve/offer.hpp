// A copy on this host of which peers may get units: one that grows, or a published one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fleet/board/board.hpp"
#include "fleet/protocol/layout.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/protocol/unit_body.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"

namespace spark::fleet {

struct UnitBody {
  std::span<const std::byte> bytes;            // in the buffer that it was read into
  std::optional<staging::Digest> piece, file;  // see AnswerHead, as the next
  bool is_plain = false;
};

class Offer {
 public:
  virtual ~Offer() = default;
  virtual SetState state() const = 0;  // its node is the caller's to fill in
  // NotFound: not to be had (any more). Any thread.
  virtual Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const = 0;
  virtual void note_member(NodeId /*node*/) {}
  virtual bool is_current() const = 0;                       // false: it has to be looked for again
  virtual std::filesystem::path copy() const { return {}; }  // that is published; none: it grows still
};

// Of a worker that stages the set now. NotFound if none does.
Result<std::shared_ptr<Offer>> offer_of_board(const std::filesystem::path& boards, const std::string& set);

// Of a published copy, its manifest, and its hash.
Result<std::shared_ptr<Offer>> offer_of_copy(const std::filesystem::path& copy,
                                             const std::filesystem::path& manifest, std::string hash);

}  // namespace spark::fleet
