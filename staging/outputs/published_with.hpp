// What a published checkpoint has of its source.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {

// Whether the checkpoint is published with everything that `source` now holds.
Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const StopFlag& stop);

// Whether the published checkpoint has the state of `source` as TreeTotals::written has it, so that other
// permissions or hard links do not count.
Result<bool> has_state_of(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                          const StopFlag& stop);

// The first file of the copy published at `path` that `source` no longer has, if it is of the same save: an
// interrupted deletion leaves such a one. Empty if there is none.
Result<std::string> lost_file(const std::filesystem::path& path, const std::filesystem::path& source);

// Refused if the copy published at `path` is one of another source. Jobs' numbers in the names of its folders
// may differ: a job's folder has another one each time.
Result<> check_same_source(const std::filesystem::path& path, const std::filesystem::path& source);

}  // namespace spark::staging
