// A dataset's copies on all hosts of a fleet, side by side.
#pragma once

#include "base/json.hpp"

namespace spark::fleet {

// `own`: datasets as in `ls --json`; `peers`: hosts as the worker `ask-peers` answers.
// {"datasets": [{"name", "same", "hosts": [{"host", "generation", "hash", "bytes", "files"}…]}…],
//  "peers": [{"name", "answers", "address", "version", "interface", "link_bytes_per_second", "reason"}…]}
// Only hosts that have it are listed; this one first, its "host" is null. "same": all have the same hash.
json::object compare_datasets(const json::array& own, const json::array& peers);

}  // namespace spark::fleet
