// Totals since the daemon started: counters that never decrease.
#pragma once

#include <cstdint>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::datasets {

struct Task;

struct Totals {
  // Results of stagings. Concurrent requests for one dataset count once.
  std::uint64_t copied = 0, from_cache = 0, failed = 0, cancelled = 0;
  Bytes copied_bytes = 0;     // of the stagings that ended as copied, without data shared with earlier copies
  Bytes peer_bytes = 0;       // part of those from other hosts
  double copied_seconds = 0;  // duration of those
  std::uint64_t stalls = 0;   // times that a staging waited for its source to return

  std::uint64_t evicted_for_room = 0, evicted_by_request = 0;
  Bytes evicted_for_room_bytes = 0, evicted_by_request_bytes = 0;

  // Results of verifying and scrubbing.
  std::uint64_t found_good = 0, found_damaged = 0, not_readable = 0;
};

// Counts a staging that has ended; logs the datasets evicted for its space.
void count(Totals& totals, const Task& task, const Result<json::object>& ended);

}  // namespace spark::datasets
