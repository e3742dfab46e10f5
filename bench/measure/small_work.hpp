// The small files for the scenario `smallfiles`, with the same sizes on every path.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// Small files that the scenario `stagecopy` copies: folders of the dataset, different ones in each round.
struct CopySample {
  std::string source;             // the common parent folder; empty if there is nothing to copy
  std::vector<DataFile> folders;  // with their bytes, in random order; none inside another

  // The folders of a round, as paths relative to the source: at least one; several only up to `at_most`
  // bytes. Empty means the whole source. Folders are reused as late as possible, since the target may still
  // have them in its memory.
  std::vector<std::string> of_round(unsigned round, Bytes at_most) const;
};

struct SmallWork {
  std::string folder;           // the sampled folder; empty: no sample, and all paths get files of one size
  std::vector<DataFile> files;  // a random sample of its files of up to 1 MiB
  CopySample copy;              // without a source: none of the folder's subfolders is small enough
  std::size_t window = 0;       // files per pass, taken from `files`; the next pass reads different ones if
                                // there are more
  std::vector<Bytes> sizes;     // for files laid out on the other paths: the sizes of the first window

  bool is_in(const std::string& folder_of_path) const;
};

// Without a sample: `count` files of `size` bytes.
SmallWork made_up_work(std::uint64_t count, Bytes size);

// Samples `folder` in a child process, since it may not answer. NotFound: it contains no small file.
Result<SmallWork> sample_work(const std::string& folder, const BenchOptions& options, std::uint64_t seed,
                              const StopFlag& stop);

// The host reads and copies the sample from another place on; the sizes of files that are laid out stay.
void start_at(SmallWork& work, const HostPart& part);

}  // namespace spark::bench
