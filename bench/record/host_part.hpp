// Of several hosts that read the same files at the same moment, each starts at another place. Otherwise the
// target would read for one host and serve the others from its memory.
#pragma once

#include <cstddef>

namespace spark::bench {

struct HostPart {
  unsigned number = 0;  // from 0; a larger one than `hosts` starts over
  unsigned hosts = 1;   // at least 1

  double share() const { return static_cast<double>(number % hosts) / hosts; }
  std::size_t offset_in(std::size_t size) const { return size * (number % hosts) / hosts; }
};

}  // namespace spark::bench
