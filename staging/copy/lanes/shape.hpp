// Number and size of the requests that a run has in progress: given, or derived from the CPUs. Among the
// usual sizes the difference is smaller than between two runs (docs/performance.md), so nothing is measured.
#pragma once

#include "base/units.hpp"
#include "staging/copy/lanes/options.hpp"

namespace spark::staging {

struct Shape {
  unsigned threads = 1;  // each with a ring
  unsigned lanes = 4;    // of each thread: requests in progress
  Bytes chunk = 4 * kMiB;
  bool operator==(const Shape&) const = default;
};

// The values in the options; unset ones are derived from the CPUs.
Shape shape_of(const CopyOptions& options);

// Threads that copy small files: each waits for its drive most of the time.
unsigned small_file_threads(const CopyOptions& options);

// Bytes of one read or write: a multiple of every alignment, at most a hash piece.
Bytes usable_chunk(Bytes wanted);

}  // namespace spark::staging
