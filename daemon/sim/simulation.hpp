// How the daemon is started on a simulated host: `spark-staged --sim FILE`.
#pragma once

#include <filesystem>

#include "daemon/host/host.hpp"

namespace spark::sim {

// Gives up every privilege of this process, and takes the state folder for a simulation. What it returns
// makes the host that `config` describes. Invalid: the file is not for one, or the folder is a real daemon's.
Result<MakeHost> prepare(const std::filesystem::path& state_dir, const config::Config& config);

}  // namespace spark::sim
