// The entries of a copy that another host has published.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fleet/copies/peer_copies.hpp"
#include "staging/models/model.hpp"

namespace spark::fleet {

// From the first peer that sends them; their hash is the copy's, and they have the hashes of the files. A
// copy of a model also has its record. `folder`: for the list while it is read. Unavailable if no peer sends
// one now, Mismatch if those that do send something else, Refused if the copy has what hosts do not exchange.
Result<staging::Model> get_entries(const ChosenCopy& chosen, const WantedCopy& wanted,
                                   std::span<const std::unique_ptr<Peer>> peers,
                                   const std::filesystem::path& folder);

}  // namespace spark::fleet
