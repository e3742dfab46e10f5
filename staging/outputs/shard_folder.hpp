// A checkpoint written by several hosts in parts, its shards: each host sends its own to a folder of the
// volume, and one of them publishes all of them under the checkpoint's name.
//   .NAME.spark-shards/HOST    the shard of that host, published there like every copy, with its manifest
//   .NAME.spark-shards/.HOST.spark-planned   that host will send its shard once others are sent
//   .NAME.spark-shards/.HOST.spark-attempt   the attempt of the job that sent the shard, if that is known
//   .NAME.spark-shards/.lock   held by all hosts that send their shards, or by the one that joins or deletes
//                              them
// All hosts must be able to write the volume: NFS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/result.hpp"
#include "staging/copy/partial/file_lock.hpp"

namespace spark::staging {

inline constexpr char kShardsSuffix[] = ".spark-shards", kPlannedSuffix[] = ".spark-planned",
                      kAttemptSuffix[] = ".spark-attempt";

struct ShardedCheckpoint {
  std::filesystem::path folder;  // in which the checkpoint is published
  std::string name;

  std::filesystem::path path() const { return folder / name; }
  std::filesystem::path shards() const;
};

// Creates the folder of the shards. Invalid if `host` can't be the name of this host's shard in it.
Result<> make_shards(const ShardedCheckpoint& checkpoint, const std::string& host);

// The other hosts wait while this sign changes: this host will send its shard. Nothing if no host has begun
// the checkpoint, or it is published. `now` is of this host's clock alone.
Result<> announce_shard(const ShardedCheckpoint& checkpoint, const std::string& host, WallTime now);
std::filesystem::path sign_of(const std::filesystem::path& shards, const std::string& host);

// The attempt of the job whose shard of `host` is there; empty if that is not known, as while it is sent.
std::string attempt_of(const std::filesystem::path& shards, const std::string& host);
// Both with the lock. Forgets one that is not `text`, before the shard is replaced; notes it, once it is.
Result<> forget_other_attempt(const std::filesystem::path& shards, const std::string& host,
                              const std::string& text);
Result<> note_attempt(const std::filesystem::path& shards, const std::string& host, const std::string& text);

// Open, since another user may give its name to another folder.
struct LockedShards {
  UniqueFd folder, lock;
  std::filesystem::path path() const { return held_path(folder); }
  explicit operator bool() const { return static_cast<bool>(lock); }
};
// None if other hosts' locks exclude this one, or one of them has just deleted the shards. Refused if another
// user made the folder (is_trusted).
Result<LockedShards> lock_shards(const std::filesystem::path& shards, Holders holders);

// Deletes them; they are locked by this process alone.
Result<> remove_locked_shards(const std::filesystem::path& shards, LockedShards locked);

// The modification time that the volume's server set; none if it can't be read.
std::optional<std::int64_t> server_time_of(const std::filesystem::path& path);

// When each host finished writing its shard, by its own clock (PublishedCopy::mtime_ns). Times of different
// hosts can't be compared: the clocks differ, and so does the time that each takes to save.
using ShardTimes = std::map<std::string, std::int64_t>;

// A checkpoint that was published now.
struct PublishedShards {
  ShardTimes times;
  bool are_all = false;  // false: another host published it, and only this host's time is known
};

// Deletes the shards in the folder that are older than the published ones on a host with both: they belong to
// checkpoints that some host never completed. Those of other hosts alone, and unfinished ones, are deleted if
// the newest copy was published after they were begun; the former only if `published` has all hosts. Those
// that a host is sending stay. Returns the first failure, which does not keep the others.
using OnRemoval = std::function<void(const std::string& checkpoint)>;  // called right before
Result<> remove_older_shards(const std::filesystem::path& folder, const PublishedShards& published,
                             const OnRemoval& on_removal = {});

}  // namespace spark::staging
