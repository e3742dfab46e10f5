// The source of a dataset that this host has none of: a copy that other hosts have published.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "fleet/fetch/peer_exchange.hpp"
#include "staging/cache/cache.hpp"

namespace spark::fleet {

// Completes a source that is_away. Asks no peer for what a commit or a pin names and the cache has. Returns
// the names of the peers that have the copy. Errors: see choose_copy.
Result<std::vector<std::string>> find_elsewhere(staging::Source& source, staging::Cache& cache,
                                                const PeerExchange& exchange);

}  // namespace spark::fleet
