// What was done with datasets since the daemon started: counts that only grow.
#pragma once

#include <cstdint>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::datasets {

struct Task;

struct Totals {
  // How stagings ended. Several requests for one dataset at a time are one.
  std::uint64_t copied = 0, from_cache = 0, failed = 0, cancelled = 0;
  Bytes copied_bytes = 0;     // by those that ended as copied, less what they took over from earlier copies
  Bytes peer_bytes = 0;       // of those, from other hosts instead of from the source
  double copied_seconds = 0;  // that those took
  std::uint64_t stalls = 0;   // times that a staging waited for its source to come back

  std::uint64_t evicted_for_room = 0, evicted_by_request = 0;
  Bytes evicted_for_room_bytes = 0, evicted_by_request_bytes = 0;

  // What verifying and scrubbing found.
  std::uint64_t found_good = 0, found_damaged = 0, not_readable = 0;
};

// A staging that has ended; what it evicted to make room is logged.
void count(Totals& totals, const Task& task, const Result<json::object>& ended);

}  // namespace spark::datasets
