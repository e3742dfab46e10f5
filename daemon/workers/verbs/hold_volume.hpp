// A volume that a worker writes or reads: held, so that nobody unmounts it meanwhile.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::workers {

// An unmounted mount point is a folder of the root disk: Unavailable if the volume is not mounted there, or
// read-only although it is to be written. An empty path: a simulated host, where nothing is held.
Result<UniqueFd> hold_volume(const std::string& mount_point, bool for_writing);

}  // namespace spark::workers
