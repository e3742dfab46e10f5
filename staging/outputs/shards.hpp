// A checkpoint whose parts, its shards, several hosts write: each host sends its own to a folder of the
// volume, and the last one publishes all of them under the checkpoint's name.
//   .NAME.spark-shards/HOST   what that host sent, published there as every copy is, with its manifest
// The volume has to be one that all hosts may write: NFS.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"

namespace spark::staging {

struct ShardedCheckpoint {
  std::filesystem::path folder;  // in which the checkpoint is published
  std::string name;

  std::filesystem::path path() const { return folder / name; }
  std::filesystem::path shards() const;
};

// Where this host's shard goes; the folder around it is made. Invalid: `host` can't be a file's name.
Result<std::filesystem::path> make_shard_path(const ShardedCheckpoint& checkpoint, const std::string& host);

struct Joined {
  bool is_published = false;
  std::vector<std::string> hosts;  // whose shards are there; none while another host publishes them
};

// Publishes the checkpoint if the shards of `nodes` hosts are there: their files are moved into one folder,
// which gets the name by one rename. Not published: some are missing, or another host does that now or has
// just done it. Goes on where an interrupted call stopped. Refused: two hosts have different files of one
// name, or something else is there.
Result<Joined> join_shards(const ShardedCheckpoint& checkpoint, unsigned nodes);

// Whether the checkpoint is published with all that `source` holds, as it is now.
Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const StopFlag& stop);

// Deletes the shards of a checkpoint that is published, which an interrupted call left.
Result<> remove_published_shards(const ShardedCheckpoint& checkpoint);

// Deletes the shards in the folder that are older than its newest copy: of checkpoints that some host never
// sent.
Result<> remove_older_shards(const std::filesystem::path& folder);

}  // namespace spark::staging
