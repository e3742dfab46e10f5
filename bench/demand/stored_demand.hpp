// Stores the newest measurement of a job; the next benchmark takes its demand from it. One file next to the
// runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "bench/demand/job_watch.hpp"

namespace spark::bench {

struct StoredDemand {
  WallTime measured;
  std::string command;              // as typed
  std::string dataset;              // as given by the user; empty if not given
  std::vector<std::string> staged;  // the variables of `spark-stage run` with the copies that the job read
  JobReads reads;
  double waiting_share = 0;    // share of the time in which some process of the host waited for storage
  bool is_cache_known = true;  // how much of the data the page cache had before

  // Why the job may consume more than was measured, each without its full stop.
  std::vector<std::string> cautions() const;
  // For the verdict: "python train.py, measured 2026-11-20".
  Demand demand() const;
};

// Schema "spark-stage-demand/1": rates in bytes per second, sizes in bytes, times in seconds.
json::object to_json(const StoredDemand& demand);

std::filesystem::path demand_file(const std::filesystem::path& runs);

Result<> save_demand(const std::filesystem::path& runs, const StoredDemand& demand);

// No value if no demand was measured; an error if the file can't be parsed.
Result<std::optional<StoredDemand>> load_demand(const std::filesystem::path& runs);

}  // namespace spark::bench
