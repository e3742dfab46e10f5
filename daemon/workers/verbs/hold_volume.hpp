// Holds a volume that a worker writes or reads, so that it can't be unmounted meanwhile.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/mounts/table.hpp"

namespace spark::workers {

// Whether the request's "mount" is the opened root of the mount that the daemon checked: another disk may be
// mounted there meanwhile. `mount`: the topmost there, nullptr for none.
bool is_checked_mount(const mounts::Mount* mount, const UniqueFd& root, const json::object& request);

// Unavailable if the volume is not mounted at the request's "mount" (the mount point is then a folder of the
// root disk), or is read-only but must be written. An empty path means a simulated host, where nothing is
// held.
Result<UniqueFd> hold_volume(const json::object& request, bool for_writing);

}  // namespace spark::workers
