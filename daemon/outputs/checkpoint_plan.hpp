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
  Bytes bytes = 0;
  std::string incomplete;    // why it is not complete; empty means complete
  bool is_settling = false;  // it is complete once it has not changed for a few seconds
  // Complete by its rule, but from before the host's start and not known to have been on its drive by then.
  bool is_unproven = false;
};

struct PublishedCheckpoint {
  std::string name;
  std::int64_t mtime_ns = 0;  // that of the local checkpoint when it was sent
  bool operator==(const PublishedCheckpoint&) const = default;
};

// A checkpoint of several hosts of which some shards are on the volume.
struct BegunCheckpoint {
  std::string name;
  std::int64_t own_mtime_ns = 0;     // of the local checkpoint when it was sent; 0 means not sent
  bool has_others = false;           // another host has sent its shard
  std::int64_t others_progress = 0;  // changes while other hosts send theirs
};

// Whether this host's shard there is of the checkpoint as it is now: a job may save a checkpoint again.
bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun);

// The newest change of each checkpoint, by name.
using Changes = std::map<std::string, std::int64_t>;

struct CheckpointPlan {
  std::optional<LocalCheckpoint> send;  // the next to send; none means that nothing is left to send
  Changes remove;                       // local checkpoints that are not kept, as they were seen
  std::string latest;                   // local, and the newest on the volume; empty means none is both
  Bytes backlog = 0;                    // of all that are still to be sent
  bool is_newest_pending = false;       // none as new as the newest complete local one is on the volume
};

// Relative to the volume's root.
std::string path_on_volume(const config::Output& output, const std::string& name);
// In a list that is newest first; null if none is complete.
const LocalCheckpoint* newest_complete(const std::vector<LocalCheckpoint>& local);

// Sending keeps the root's modification time. A checkpoint of several hosts has the time of the host that
// finished last.
bool is_published(const config::Output& output, const LocalCheckpoint& local,
                  const std::vector<PublishedCheckpoint>& published);

// Both lists are newest first; `sent`: the changes at the time of sending, as far as known. The newest
// complete checkpoint is sent first; once it is on the volume, older ones are no longer sent, unless
// `keep_every` requires it. Several hosts may have different newest ones, so one that another host has begun
// is sent before the newest: the newest that all hosts have is always published. Their clocks may differ: a
// checkpoint is older than the newest on the volume if it is older than that one's local copy; without a
// local copy, if its step is not later either, and no host waits for it. A checkpoint that was rewritten
// after sending is sent again. A local one is removed only if one at least as new is on the volume;
// never the newest complete one, nor the target of `latest`.
CheckpointPlan plan_checkpoints(const config::Output& output, const std::vector<LocalCheckpoint>& local,
                                const std::vector<PublishedCheckpoint>& published, const Changes& sent,
                                const std::vector<BegunCheckpoint>& begun = {});

// From the results of the worker verbs "scan-output" and "list-published".
std::vector<LocalCheckpoint> local_from_json(const json::object& answer);
std::vector<PublishedCheckpoint> published_from_json(const json::object& answer);
std::vector<BegunCheckpoint> begun_from_json(const json::object& answer);
// {NAME: nanoseconds}; null gives no changes.
json::object changes_to_json(const Changes& changes);
Changes changes_from_json(const json::object* object);

}  // namespace spark::outputs
