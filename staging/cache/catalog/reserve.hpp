// Space on the state folder's drive for changes of the catalog that free some, once that drive is full.
#pragma once

#include <filesystem>

namespace spark::staging {

// Before an eviction: makes the reserve, a file of 1 MiB, while there is much space, and gives it up when
// there is none. Without one everything goes on.
void tend_reserve(const std::filesystem::path& state_dir);

}  // namespace spark::staging
