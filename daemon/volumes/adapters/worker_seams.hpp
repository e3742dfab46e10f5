// The seams of a volume as they really are: workers touch, sysfs and mountinfo show.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/adapters/host_neighbours.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

// `folder`: where the volume's file system identity, history and intent are kept, a folder of the state
// folder. `shared`, `target_at`: see Neighbours.
Seams worker_seams(workers::Runner& runner, HostSnapshot& snapshot, const std::string& volume,
                   const std::filesystem::path& folder, std::function<bool()> shared,
                   HostNeighbours::TargetAt target_at = {});

}  // namespace spark::volumes
