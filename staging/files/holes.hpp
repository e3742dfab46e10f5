// What of a file is data, and what a hole that its copy keeps.
#pragma once

#include "base/units.hpp"

namespace spark::staging {

// A smaller one is not looked for.
inline constexpr Bytes kHoleWorthKeeping = 4 * kKiB;

// Of `size` bytes of the open file; all of them where the file system does not tell.
Bytes bytes_of_data(int fd, Bytes size);

}  // namespace spark::staging
