// Totals of copies sent to volumes since the daemon started.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace spark::outputs {

// Counters that never decrease.
struct Totals {
  std::uint64_t sent = 0, unchanged = 0, failed = 0, cancelled = 0;
  Bytes sent_bytes = 0;
};

// Checkpoints that are not sent yet.
struct Backlog {
  std::size_t outputs = 0;
  Bytes bytes = 0;  // of those with a known size
};

}  // namespace spark::outputs
