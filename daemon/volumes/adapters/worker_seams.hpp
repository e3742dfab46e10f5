// The seams of a volume on a real host: changed by workers, observed through sysfs and mountinfo.
#pragma once

#include <filesystem>
#include <string>

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

// `folder`: a folder in the state folder with the volume's file system identity, history and intent.
Seams worker_seams(workers::Runner& runner, HostSnapshot& snapshot, const std::string& volume,
                   const std::filesystem::path& folder);

}  // namespace spark::volumes
