// One host's part in a checkpoint of several hosts, from its first byte until the checkpoint is published.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {

struct OwnShard {
  std::filesystem::path source;
  SameAttempt attempt;  // its host is this one
};

struct SentShard {
  CopyReport report;  // unchanged if nothing was copied
  Joined joined;
  std::vector<std::string> warnings{};
};

// What this host knows of a publication. If another host made it, that is the time of its own shard alone,
// and nothing once its source is gone.
PublishedShards published_shards(const Joined& joined, const OwnShard& own);

// Sends this host's shard, and publishes the checkpoint if those of all `nodes` are there. While another host
// publishes it, nothing is done: not published, and no hosts. Called again until it is published; the
// sequence of calls on all hosts ends with a published checkpoint whichever of them were interrupted, and
// wherever. After the publication also deletes older shards (remove_older_shards).
Result<SentShard> send_shard(const ShardedCheckpoint& checkpoint, const OwnShard& own, unsigned nodes,
                             const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
