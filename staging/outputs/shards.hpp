// A checkpoint written by several hosts in parts, its shards: each host sends its own to a folder of the
// volume, and the last one publishes all of them under the checkpoint's name.
//   .NAME.spark-shards/HOST   the shard of that host, published there like every copy, with its manifest
// All hosts must be able to write the volume: NFS.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

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

// Shards belong together if the file `marker` in them is the same as in the shard of `host`: a job that is
// killed and resumes may save a step again, and hosts' shards of the two attempts must not be mixed.
// An empty marker means that all shards belong together.
struct SameAttempt {
  std::string host{}, marker{};
};

struct Joined {
  bool is_published = false;
  std::vector<std::string>
      hosts;  // the hosts with a shard of this attempt there; empty while another host publishes them
};

// Publishes the checkpoint if the shards of `nodes` hosts are there: their files are moved into one folder,
// which gets the name by one rename. Not published if some are missing, or if another host is publishing it
// or has just done so. Resumes an interrupted call. Refused if two hosts have different files of one name, or
// if the name is taken by something else.
Result<Joined> join_shards(const ShardedCheckpoint& checkpoint, unsigned nodes,
                           const SameAttempt& attempt = {});

// Deletes the shards of a published checkpoint, left by an interrupted call.
Result<> remove_published_shards(const ShardedCheckpoint& checkpoint);

// Deletes the shards in the folder that are older than its newest copy: they belong to checkpoints that some
// host never completed.
Result<> remove_older_shards(const std::filesystem::path& folder);

}  // namespace spark::staging
