// One host's part in a checkpoint of several hosts, from its first byte until the checkpoint is published.
#pragma once

#include <cstdint>
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
  // SentShard::shard_sent_ns of an earlier call for the same request; 0 means none.
  std::int64_t sent_ns = 0;
  OnRemoval on_removal{};  // of older shards
  // Refused if the checkpoint is published with other files, without a marker that has them replaced, and no
  // other host has begun it again: the others may have ended, and the request would wait for ever.
  bool refuses_other_files = false;
};

struct SentShard {
  CopyReport report;  // unchanged if nothing was copied
  Joined joined;
  std::vector<std::string> warnings{};
  std::int64_t shard_sent_ns = 0;  // when this host's shard was complete, by the server's clock; 0: unknown
  // If not empty, nothing was done: the shard that an earlier call sent was deleted, and this newer
  // checkpoint is published. The requested one was published and deleted meanwhile, or replaced before all
  // hosts had sent theirs.
  std::string replaced_by{};
};

// A publication, as far as this host knows it. If another host made it, this host knows only the time of its
// own shard, and nothing once its source is gone.
PublishedShards published_shards(const Joined& joined, const OwnShard& own);

// Sends this host's shard, and publishes the checkpoint if those of all `nodes` are there. While another host
// publishes it, nothing is done: not published, and no hosts. Called again until it is published; the
// sequence of calls on all hosts ends with a published checkpoint whichever of them were interrupted, and
// wherever, unless a newer one replaces it. After the publication also deletes older shards
// (remove_older_shards). Mismatch if the source is not in the state that `options` name: its shard stays.
Result<SentShard> send_shard(const ShardedCheckpoint& checkpoint, const OwnShard& own, unsigned nodes,
                             const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
