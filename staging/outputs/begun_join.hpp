// A join of shards that has begun to move their files. It is recorded in the state of the checkpoint's
// partial folder, so that every host knows it, and the next call on any of them completes it.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/outputs/shard_folder.hpp"

namespace spark::staging {

// For PartialArea::keep_only.
std::string state_of_join(const std::vector<std::string>& hosts);

// The hosts whose shards are being joined, sorted; empty if no join has begun. Only a process that holds the
// lock of the shards can know.
Result<std::vector<std::string>> hosts_of_begun_join(const ShardedCheckpoint& checkpoint);

// Deletes what was moved, for a join that can't be completed. Completes one whose checkpoint has its name.
// The lock is held by this process alone.
Result<> remove_begun_join(const ShardedCheckpoint& checkpoint);

}  // namespace spark::staging
