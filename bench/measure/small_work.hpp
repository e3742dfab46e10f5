// The small files that every path reads in the scenario `smallfiles`: of the same sizes everywhere.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "bench/files/copy_sample.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

struct SmallWork {
  std::string folder;  // that was sampled; empty: nothing was, and all paths get files of kSmallFileSize
  std::vector<DataFile> files;  // a random sample of its files of up to 1 MiB
  CopySample copy;              // of it; without a source: none of its folders is small enough
  std::size_t window = 0;       // of `files` in a pass; each pass reads others, if there are
  std::vector<Bytes> sizes;     // of those that are laid out where the folder is not: as the first window's

  bool is_in(const std::string& folder_of_path) const;
};

// Without a sample: `count` files of kSmallFileSize.
SmallWork made_up_work(std::uint64_t count);

// Samples `folder`, as much as `at_most` bytes a round. Blocks on the path: run it apart (process.hpp).
SmallWork sample_work(const std::string& folder, Bytes at_most, Bytes copy_at_most, std::uint64_t seed);

// The same in a process of its own, since the folder may not answer. NotFound: it holds no small file.
Result<SmallWork> sample_work_apart(const std::string& folder, const BenchOptions& options,
                                    std::uint64_t seed, const StopFlag& stop);

}  // namespace spark::bench
