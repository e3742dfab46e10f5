// A file's data, and the holes that its copy keeps.
#pragma once

#include "base/units.hpp"

namespace spark::staging {

// Smaller holes are ignored.
inline constexpr Bytes kHoleWorthKeeping = 4 * kKiB;

// Bytes of data among the `size` bytes of the open file; all of them if the file system can't report holes.
Bytes bytes_of_data(int fd, Bytes size);

}  // namespace spark::staging
