// Small files that the scenario `stagecopy` copies: folders of the dataset, different ones in each round.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

struct CopySample {
  std::string source;             // the common parent folder; empty if there is nothing to copy
  std::vector<DataFile> folders;  // with their bytes, in random order; none inside another

  // The folders of a round, as paths relative to the source: at least one; several only up to `at_most`
  // bytes. Empty means the whole source. Folders are reused as late as possible, since the target may still
  // have them in its memory.
  std::vector<std::string> of_round(unsigned round, Bytes at_most) const;
};

}  // namespace spark::bench
