// The small files that the scenario `stagecopy` copies: folders of the dataset, other ones in each round.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

struct CopySample {
  std::string source;             // the folder that all of them are in; empty: there is nothing to copy
  std::vector<DataFile> folders;  // with their bytes, in random order; none inside another

  // The folders of a round, as paths in the source: at least one, no more than `at_most` bytes of several.
  // Empty: all of the source. The target may still have an earlier round's in its memory, so they come again
  // last.
  std::vector<std::string> of_round(unsigned round, Bytes at_most) const;
};

}  // namespace spark::bench
