// The data that the scenario `stagecopy` copies in a round, and the copy.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "bench/measure/bench_target.hpp"

namespace spark::bench {

struct CopyWork {
  std::string source;             // empty: nothing to copy
  std::vector<std::string> only;  // see CopyOptions
  Bytes bytes = 0;                // of a large file; 0: small files, no more than a quarter of the size
};

// Small files if the dataset consists of them, otherwise a large file; different files in each round.
// Existing files are used only up to the size of our own files.
// Empty if every file is too large.
CopyWork copy_work(const BenchTarget& target, const BenchOptions& options, unsigned round);

// A path that exceeds it counts as unresponsive.
Duration copy_deadline(const CopyWork& work, const BenchOptions& options);

// Copies into the scratch folder of `local` with our own engine, and removes the copy. `rate_limit` is in
// bytes per second, 0: no limit. `done`, if set, counts the bytes. Runs in a child.
Result<Measured> measure_copy(const CopyWork& work, const BenchTarget& local, Bytes rate_limit,
                              std::atomic<std::uint64_t>* done);

}  // namespace spark::bench
