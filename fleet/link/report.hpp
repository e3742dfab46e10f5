// A tested link as JSON, for `fleet test --json` and the screens.
#pragma once

#include "base/json.hpp"
#include "fleet/link/judge.hpp"

namespace spark::fleet {

// {"peer", "address", "interface", "megabits", "mtu", "packet", "peer_interface", "peer_megabits",
// "received_bytes_per_second", "sent_bytes_per_second", "own_busy", "peer_busy" (see busy_share), "faults"}:
// numbers are null if they are unknown.
json::object to_json(const LinkFacts& facts, const std::vector<LinkFinding>& findings);

}  // namespace spark::fleet
