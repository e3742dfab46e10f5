// Compares a dataset's copies on all hosts of a fleet.
#pragma once

#include "base/json.hpp"

namespace spark::fleet {

// `own`: datasets as in `ls --json`; `peers`: hosts as returned by the worker verb `ask-peers`.
// {"datasets": [{"name", "same", "hosts": [{"host", "generation", "hash", "bytes", "files"}…]}…],
//  "peers": [{"name", "answers", "address", "version", "interface", "link_bytes_per_second", "reason"}…]}
// Only hosts with a copy are listed; this one first, with "host" null. "same": all copies have the same hash.
json::object compare_datasets(const json::array& own, const json::array& peers);

}  // namespace spark::fleet
