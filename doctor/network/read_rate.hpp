// How fast a connected namespace is read.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::doctor {

// Reads a device in bursts for 1.2 s, at most 4 GB, with direct I/O and several requests at once. The bursts
// take `share` of the time, 1: all of it, and the pauses leave the link to others. {"bytes_per_second"}: of
// the bursts. May block indefinitely: call it in a child process.
Result<json::object> read_rate(const std::string& path, double share);

}  // namespace spark::doctor
