// How fast a connected namespace is read.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::doctor {

// Reads a device for 1.5 s, at most 4 GB, with direct I/O and several requests at once: {"bytes_per_second"}.
// May block indefinitely: call it in a child process.
Result<json::object> read_rate(const std::string& path);

}  // namespace spark::doctor
