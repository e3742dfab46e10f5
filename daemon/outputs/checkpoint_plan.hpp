// What is to be done with an output's checkpoints: a pure function of what is here, what is on the volume,
// and the configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"

namespace spark::outputs {

struct LocalCheckpoint {
  std::string name;
  std::int64_t mtime_ns = 0;
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

// Both lists are newest first. The newest complete checkpoint is sent first; older ones are superseded by one
// that is on the volume, unless `keep_every` says otherwise. A local one is removed only when one as new or
// newer is on the volume, and never the newest complete one.
CheckpointPlan plan_checkpoints(const config::Output& output, const std::vector<LocalCheckpoint>& local,
                                const std::vector<PublishedCheckpoint>& published);

// From the answers of the workers' verbs "scan-output" and "list-published".
std::vector<LocalCheckpoint> local_from_json(const json::object& answer);
std::vector<PublishedCheckpoint> published_from_json(const json::object& answer);

}  // namespace spark::outputs
