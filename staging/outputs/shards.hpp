// Publishes the checkpoint of which several hosts have sent their shards.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/outputs/shard_folder.hpp"

namespace spark::staging {

// Shards belong together if the file `marker` in them is the same as in the shard of `host`: a job that is
// killed and resumes may save a step again, and hosts' shards of the two attempts must not be mixed.
// An empty marker means that all shards belong together. `text` is noted beside the shard; those with another
// one, or without one where this has one, or the reverse, do not belong together.
struct SameAttempt {
  std::string host{}, marker{}, text{};
};

struct Joined {
  bool is_published = false;
  std::vector<std::string>
      hosts;  // the hosts with a shard of this attempt there; empty while another host publishes them
  ShardTimes times{};                 // of the shards that were published; empty if another host did it
  std::vector<std::string> others{};  // the hosts with a shard of another attempt there
};

// Publishes the checkpoint if the shards of `nodes` hosts are there: their files are moved into one folder,
// which gets the name by one rename. Not published if some are missing, if a host is sending its shard, or if
// another host is publishing it or has just done so; if all are there, it tries again for two to four seconds
// until no other host looks at them. Completes an interrupted call, whatever `nodes` and
// `attempt` are. Replaces the checkpoint of an earlier attempt, as `marker` tells. Refused if two hosts have
// different files of one name, or if the name is taken by something else.
Result<Joined> join_shards(const ShardedCheckpoint& checkpoint, unsigned nodes,
                           const SameAttempt& attempt = {}, const StepHook& hook = {});

// Refused: the name has other files.
tl::unexpected<Error> other_files_at(const ShardedCheckpoint& checkpoint);

// Deletes the shards of a published checkpoint, left by an interrupted call; none if one is of another
// attempt, which may be a later one.
Result<> remove_published_shards(const ShardedCheckpoint& checkpoint, const SameAttempt& attempt);

}  // namespace spark::staging
