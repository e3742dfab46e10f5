// How many requests of what size a run has under way: given, or from the CPUs. Which of the usual sizes it is
// makes less difference than one run to the next (docs/performance.md), so nothing is tried out.
#pragma once

#include "base/units.hpp"
#include "staging/copy/lanes/options.hpp"

namespace spark::staging {

struct Shape {
  unsigned threads = 1;  // each with a ring
  unsigned lanes = 4;    // of each thread: requests under way
  Bytes chunk = 4 * kMiB;
  bool operator==(const Shape&) const = default;
};

// What the options ask for, the rest from the CPUs.
Shape shape_of(const CopyOptions& options);

// Threads that copy small files: each waits for its drive most of the time.
unsigned small_file_threads(const CopyOptions& options);

// Bytes that one read or write moves: a multiple of every alignment, at most a hash piece.
Bytes usable_chunk(Bytes wanted);

}  // namespace spark::staging
