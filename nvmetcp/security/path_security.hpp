// Every path of a subsystem, made by any program: the kernel's multipath may send data over any of them.
#pragma once

#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// All live paths have the configured keys and TLS. Refused: one has not; it is named.
Result<> check_paths_secured(const SystemRoot& root, const std::vector<Controller>& paths,
                             const ConnectOptions& options);

}  // namespace spark::nvmetcp
