// The seams of a volume as they really are: workers touch, sysfs and mountinfo show.
#pragma once

#include <filesystem>
#include <string>

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/adapters/host_neighbours.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

// `folder`: where the volume's file system identity, history and intent are kept, a folder of the state
// folder.
Seams worker_seams(workers::Runner& runner, HostSnapshot& snapshot, const std::string& volume,
                   const std::filesystem::path& folder, OtherVolumes others);

}  // namespace spark::volumes
