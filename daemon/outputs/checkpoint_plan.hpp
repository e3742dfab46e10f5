// What is to be done with an output's checkpoints: a pure function of what is here, what is on the volume,
// and the configuration.
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
  std::string incomplete;  // why it is not complete; empty: it is
};

struct PublishedCheckpoint {
  std::string name;
  std::int64_t mtime_ns = 0;  // that of the local one, when it was sent
};

struct CheckpointPlan {
  std::optional<LocalCheckpoint> send;  // next; none: all that has to be is on the volume
  std::vector<std::string> remove;      // local ones that are not kept
  std::string latest;                   // local, and the newest on the volume; empty: none is both
  Bytes backlog = 0;                    // of all that still have to be sent
};

// By name, the newest change of each checkpoint.
using Changes = std::map<std::string, std::int64_t>;

// The root's time of change is kept when a checkpoint is sent. One of several hosts has that of the last of
// them.
bool is_published(const config::Output& output, const LocalCheckpoint& local,
                  const std::vector<PublishedCheckpoint>& published);

// Both lists are newest first; `sent`: as the checkpoints were when they were sent, where that is known. The
// newest complete checkpoint is sent first; older ones are superseded by one that is on the volume, unless
// `keep_every` says otherwise. One that was rewritten since it was sent is sent again. A local one is removed
// only when one as new or newer is on the volume; never the newest complete one, nor the one that `latest`
// leads to.
CheckpointPlan plan_checkpoints(const config::Output& output, const std::vector<LocalCheckpoint>& local,
                                const std::vector<PublishedCheckpoint>& published, const Changes& sent);

// From the answers of the workers' verbs "scan-output" and "list-published".
std::vector<LocalCheckpoint> local_from_json(const json::object& answer);
std::vector<PublishedCheckpoint> published_from_json(const json::object& answer);
// {NAME: nanoseconds}; of null, nothing.
json::object changes_to_json(const Changes& changes);
Changes changes_from_json(const json::object* object);

}  // namespace spark::outputs
