// How fast a connected namespace is read.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spark::doctor {

// Reads a device in bursts for 1.2 s, at most 4 GB, with direct I/O and several requests at once. The bursts
// take `share` of the time, 1: all of it, and the pauses leave the link to others. Bytes per second, of the
// bursts. May block indefinitely: call it in a child process.
Result<double> read_rate(const std::string& path, double share);

}  // namespace spark::doctor
