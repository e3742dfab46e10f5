// Work that may block in the kernel where nothing can cancel it, kept out of this process.
#pragma once

#include "base/apart.hpp"

namespace spark::cli {

// As run_apart(); when this process dies, the child ends its work alone. For programs with one thread.
template <class Work>
auto call_bounded(Duration deadline, const Work& work) {
  ApartOptions options;
  options.deadline = deadline;
  options.outlives_parent = true;
  return run_apart(options, work);
}

}  // namespace spark::cli
