// A checkpoint written by several hosts in parts, its shards: each host sends its own to a folder of the
// volume, and one of them publishes all of them under the checkpoint's name.
//   .NAME.spark-shards/HOST    the shard of that host, published there like every copy, with its manifest
//   .NAME.spark-shards/.lock   held by all hosts that send their shards, or by the one that joins or deletes
//                              them
// All hosts must be able to write the volume: NFS.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/copy/partial/file_lock.hpp"

namespace spark::staging {

inline constexpr char kShardsSuffix[] = ".spark-shards";

struct ShardedCheckpoint {
  std::filesystem::path folder;  // in which the checkpoint is published
  std::string name;

  std::filesystem::path path() const { return folder / name; }
  std::filesystem::path shards() const;
};

// The path of this host's shard; its parent folder is created. Invalid if `host` can't be a file's name.
Result<std::filesystem::path> make_shard_path(const ShardedCheckpoint& checkpoint, const std::string& host);

// None if other hosts' locks exclude this one, or one of them has just deleted the shards.
Result<UniqueFd> lock_shards(const std::filesystem::path& shards, Holders holders);

// Deletes them; `lock` is held by this process alone.
Result<> remove_locked_shards(const std::filesystem::path& shards, UniqueFd lock);

// Deletes the shards of a published checkpoint, left by an interrupted call.
Result<> remove_published_shards(const ShardedCheckpoint& checkpoint);

// Deletes the shards in the folder that are older than its newest copy: they belong to checkpoints that some
// host never completed. Those that a host is sending stay, as do unfinished ones that were begun after that
// copy was published.
Result<> remove_older_shards(const std::filesystem::path& folder);

}  // namespace spark::staging
