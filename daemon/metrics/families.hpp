// The families of /metrics, grouped by subject. docs/metrics.md lists them.
#pragma once

#include <optional>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/metrics/page.hpp"
#include "daemon/outputs/totals.hpp"
#include "daemon/volumes/status.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::metrics {

struct VolumeFacts {
  const config::Volume* settings;  // both outlive the call
  const volumes::Status* status;
};
void add_volumes(Page& page, const std::vector<VolumeFacts>& volumes);

struct DatasetFacts {
  std::optional<json::object> list;  // from `ls --json`; none while the cache can't be read
  json::value cache;                 // from `status --json`; null while unknown
  datasets::Totals totals;
  std::size_t leases = 0;
};
void add_datasets(Page& page, const DatasetFacts& facts);

struct OutputFacts {
  struct Watched {
    std::string name;
    std::int64_t published_mtime_ns = 0;  // 0: no published checkpoint is known
    Bytes backlog = 0;
    std::uint64_t failures = 0;
    bool is_behind = false;
  };
  outputs::Totals totals;
  outputs::Backlog backlog;
  std::vector<Watched> watched;
};
void add_outputs(Page& page, const OutputFacts& facts);

// `fleet` of `status --json`; null: no fleet.
void add_fleet(Page& page, const json::value& status);

struct DaemonFacts {
  workers::WorkerCounts workers;
  std::size_t abandoned_now = 0;
  bool last_reload_worked = true;
  WallTime config_loaded;  // time of the one in force
};
void add_daemon(Page& page, const DaemonFacts& facts);

// This process, under the names used by Prometheus's client libraries.
void add_process(Page& page, const SystemRoot& root);

}  // namespace spark::metrics
