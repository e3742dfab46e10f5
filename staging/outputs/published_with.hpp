// One host's files in a checkpoint of several hosts.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {

// Whether the checkpoint is published with everything that `source` now holds.
Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const StopFlag& stop);

}  // namespace spark::staging
