// What was sent to volumes since the daemon started.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace spark::outputs {

// Counts that only grow.
struct Totals {
  std::uint64_t sent = 0, unchanged = 0, failed = 0, cancelled = 0;
  Bytes sent_bytes = 0;
};

// What is not sent yet.
struct Backlog {
  std::size_t outputs = 0;
  Bytes bytes = 0;  // of those whose size is known
};

}  // namespace spark::outputs
