// Holds a volume that a worker writes or reads, so that it can't be unmounted meanwhile.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::workers {

// Unavailable if the volume is not mounted there (the mount point is then a folder of the root disk), or is
// read-only but must be written. An empty path means a simulated host, where nothing is held.
Result<UniqueFd> hold_volume(const std::string& mount_point, bool for_writing);

}  // namespace spark::workers
