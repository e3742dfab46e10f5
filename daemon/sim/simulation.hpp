// Starts the daemon on a simulated host: `spark-staged --sim FILE`.
#pragma once

#include <filesystem>

#include "daemon/host/host.hpp"

namespace spark::sim {

// Drops every privilege of this process, and claims the state folder for a simulation. The returned function
// creates the host that `config` describes. Invalid if the file is not for a simulation, or the folder
// belongs to a real daemon.
Result<MakeHost> prepare(const std::filesystem::path& state_dir, const config::Config& config);

}  // namespace spark::sim
