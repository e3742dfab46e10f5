// Decides how to handle an output's checkpoints: a pure function of the local checkpoints, those on the
// volume, and the configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"

namespace spark::outputs {

struct LocalCheckpoint {
  std::string name;
  std::int64_t mtime_ns = 0;    // of its root
  std::int64_t changed_ns = 0;  // the newest change of anything in it
  std::int64_t written = 0;     // identifies what was written: a chmod changes nothing
  Bytes bytes = 0;
  std::uint64_t entries = 0, inode = 0;  // everything in it; of its root
  std::string incomplete;                // why it is not complete; empty means complete
  bool is_settling = false;              // it is complete once it has not changed for a few seconds
  bool is_unproven = false;              // staging::Checkpoint has this and the next
  bool stays_unproven = false;
  bool is_in_future = false;  // its times are later than the clock
};

struct PublishedCheckpoint {
  std::string name;
  std::int64_t mtime_ns = 0;  // that of the local checkpoint when it was sent
  bool operator==(const PublishedCheckpoint&) const = default;
};

// One whose manifest can't be read: neither counted nor deleted.
struct UnreadableCheckpoint {
  std::string name, reason;
};

// A checkpoint of several hosts of which some shards are on the volume.
struct BegunCheckpoint {
  std::string name;
  std::int64_t own_written = 0;      // LocalCheckpoint::written when its shard was sent; 0 means not sent
  bool has_others = false;           // another host has sent its shard
  std::int64_t others_progress = 0;  // changes while other hosts send theirs
  bool is_stuck = false;             // nothing of this has changed for some time
  bool operator==(const BegunCheckpoint&) const = default;
};

// Whether this host's shard there is of the checkpoint as it is now: a job may save a checkpoint again.
bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun);

// A state of each checkpoint, by name: LocalCheckpoint::written, or in records of version 0.2.0 changed_ns.
using Changes = std::map<std::string, std::int64_t>;

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
  Bytes backlog = 0;               // of all that are still to be sent
  unsigned waiting = 0;            // their number
  bool is_newest_pending = false;  // neither the highest complete local one nor a higher one is on the volume
  std::string overtaken_by;        // the highest complete local one is not sent, as this one is above it
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
// `keep_every` requires it, or the job calls it its best. Several hosts may have different ones, so one that
// another host has begun is sent before the highest, and the next lower one if the other hosts don't complete
// the highest: the highest that all hosts have is always published. A
// checkpoint that was written again after sending is sent again while the volume has it. Those without a step
// are ordered among themselves, by time, and are never surplus. Neither is the highest complete one.
CheckpointPlan plan_checkpoints(const config::Output& output, const Holdings& held, const Changes& sent);

// From the results of the worker verbs "scan-output" and "list-published".
std::vector<LocalCheckpoint> local_from_json(const json::object& answer);
std::vector<PublishedCheckpoint> published_from_json(const json::object& answer, const char* key = "copies");
std::vector<BegunCheckpoint> begun_from_json(const json::object& answer);
std::vector<UnreadableCheckpoint> unreadable_from_json(const json::object& answer);
// {NAME: nanoseconds}; null gives no changes.
json::object changes_to_json(const Changes& changes);
Changes changes_from_json(const json::object* object);

}  // namespace spark::outputs
