// Decides how to handle an output's checkpoints: a pure function of the local checkpoints, those on the
// volume, and the configuration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "staging/checkpoints/checkpoint.hpp"

namespace spark::outputs {

using LocalCheckpoint = staging::Checkpoint;
using PublishedCheckpoint = staging::PublishedCopy;
using staging::BegunCheckpoint, staging::UnreadableCopy;

// Null if there is none.
template <class Row>
const Row* find_named(const std::vector<Row>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

// Whether this host's shard there is of the checkpoint as it is now: a job may save a checkpoint again.
bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun);

using Changes = staging::KnownStates;

// What there is: the highest first in each list, by staging::is_above.
struct Holdings {
  std::vector<LocalCheckpoint> local;
  std::optional<std::vector<PublishedCheckpoint>> published;  // none: the volume could not be read
  std::vector<BegunCheckpoint> begun;
  std::string best;  // the best model so far, by the highest local one; empty means that none is named
};

// A local checkpoint that need not stay here, if the copy that this depends on is whole.
struct Surplus {
  std::string name;
  std::int64_t written = 0;  // of that state of it
  PublishedCheckpoint copy;  // of that very checkpoint, or of a higher step
};

struct CheckpointPlan {
  std::optional<LocalCheckpoint> send;  // the next to send; none means that nothing is left to send
  std::vector<Surplus> surplus;
  Bytes backlog = 0;                   // of all that are still to be sent
  unsigned waiting = 0;                // their number
  std::vector<std::string> awaited{};  // those of them that other hosts wait for
  bool is_newest_pending = false;  // neither the highest complete local one nor a higher one is on the volume
  // The highest complete local one, or a lower one of its series, may still be published: by a sending, or
  // once the other hosts have sent their shards.
  bool may_publish = false;
  // Not sent, as the other one on the volume is above it: the highest complete local one, or one that a job
  // saved after it went back to an earlier step. Empty: there is none.
  std::string overtaken, overtaken_by;
};

// The rule for completeness, for a request to a worker.
std::string rule_of(const config::Output& output);
// Relative to the volume's root.
std::string path_on_volume(const config::Output& output, const std::string& name);
// In a list with the highest first; null if none is complete.
const LocalCheckpoint* newest_complete(const std::vector<LocalCheckpoint>& local);

// Sending keeps the root's modification time. A checkpoint of several hosts has the time of the host that
// finished last.
bool is_published(const config::Output& output, const LocalCheckpoint& local,
                  const std::vector<PublishedCheckpoint>& published);

// `sent`: the writes at the time of sending (in earlier records: the changes), as far as known. The highest
// complete checkpoint is sent first; once it is on the volume, lower ones are no longer sent, unless
// `keep_every` requires it, or the job calls it its best. All of this counts within one series, as of
// G_100.pth and G_200.pth beside D_100.pth (staging::form_of). Several hosts may have different ones, so one
// that another host has begun is sent before the highest, and the next lower one if the other hosts don't
// complete the highest: the highest that all hosts have is always published. A checkpoint that was written
// again after sending is sent again while the volume has it. Those without a step are ordered by time, and
// are never surplus. Neither is the highest complete one of a series, nor one that a job saved after the
// higher one that is on the volume.
CheckpointPlan plan_checkpoints(const config::Output& output, const Holdings& held, const Changes& sent);

}  // namespace spark::outputs
