// The kernel's figures for the host's memory.
#pragma once

#include <string_view>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::staging {

// A line of /proc/meminfo, "MemFree"; 0 if it can't be read.
Bytes read_meminfo(const SystemRoot& root, std::string_view name);

}  // namespace spark::staging
