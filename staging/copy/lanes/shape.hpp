// Number and size of the requests that a run has in progress: given, or derived from the CPUs. For large
// files the usual sizes differ by less than two runs do (docs/performance.md), so nothing is measured.
#pragma once

#include "base/units.hpp"
#include "staging/copy/lanes/options.hpp"

namespace spark::staging {

struct Shape {
  unsigned threads = 1;  // each with a ring
  unsigned lanes = 4;    // of each thread: requests in progress
  Bytes chunk = 4 * kMiB;
  unsigned openers = 0;  // threads that open and finish files for the others
  bool operator==(const Shape&) const = default;
};

// The values in the options; unset ones are derived from the CPUs.
Shape shape_of(const CopyOptions& options);

// Numbers of threads that may copy small files, and the one to begin with.
struct ThreadRange {
  unsigned first = 1, fewest = 1, most = 1;
  bool operator==(const ThreadRange&) const = default;
};

// The number in the options, or a range: what is best depends on the drives, see ThreadSearch. Raises this
// process's limit on open files as far as it may; fewer threads if it stays too low for them.
ThreadRange small_file_threads(const CopyOptions& options);

// Bytes of one read or write: a multiple of every alignment, at most a hash piece.
Bytes usable_chunk(Bytes wanted);

}  // namespace spark::staging
