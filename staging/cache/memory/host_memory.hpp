// The memory of this host, and whether its GPU uses it.
#pragma once

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::staging {

// Of all files, without shared memory.
Bytes page_cache_of_host(const SystemRoot& root);

// A GB10, as in a DGX Spark: what the page cache holds, the GPU can't allocate. By the driver's name for the
// GPU, or the product's name before the driver is loaded.
bool gpu_shares_memory(const SystemRoot& root);

}  // namespace spark::staging
