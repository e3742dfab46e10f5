// Checkpoints of several hosts that are not published yet: some hosts' shards are on the volume.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/checkpoints/checkpoint.hpp"

namespace spark::staging {

// Those in the folder, in no order; `host`: this host's name.
Result<std::vector<BegunCheckpoint>> begun_checkpoints(const std::filesystem::path& folder,
                                                       const std::string& host);

}  // namespace spark::staging
