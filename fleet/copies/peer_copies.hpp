// The copies that other hosts have published, and which of them a dataset without a source of its own is.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "fleet/fetch/peer.hpp"
#include "staging/models/model.hpp"

namespace spark::fleet {

struct PeerCopy {
  std::string dataset;  // its name there
  std::string hash;
  std::optional<staging::ModelRecord> model{};  // without its digests
};

// A folder that a peer has adopted, and does not offer at this moment.
struct WithheldFolder {
  std::string dataset;
  std::string model{};  // its name; empty: it is none
};

struct PeerAnswer {
  std::string peer;
  std::vector<PeerCopy> copies{};
  std::vector<WithheldFolder> withheld{};
  std::string silence{};  // why it did not answer; empty: it did
};

// Those of a peer's list that can be named by their content; see PublishedCopies::list.
std::vector<PeerCopy> copies_in(const json::array& list);
std::vector<WithheldFolder> withheld_in(const json::array& list);

// Asks all at once.
std::vector<PeerAnswer> ask_for_copies(std::span<const std::unique_ptr<Peer>> peers);

// A model is found under any dataset's name, other content under the dataset's own.
struct WantedCopy {
  std::string dataset;
  std::optional<staging::ModelOptions> model{};
};

struct ChosenCopy {
  std::string hash;
  std::vector<std::string> peers{};  // that have it
};

// NotFound if all peers answered and none has it, Unavailable if one that did not answer may have it, or one
// does not offer it now.
// Mismatch if peers have different ones, or none of them is the one that is pinned.
Result<ChosenCopy> choose_copy(const WantedCopy& wanted, std::span<const PeerAnswer> answers);

}  // namespace spark::fleet
