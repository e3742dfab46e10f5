// What a file system has free, and what files take on it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct Space {
  Bytes total = 0, free = 0;                        // free: for new data, without what is kept for root
  std::uint64_t inodes_total = 0, inodes_free = 0;  // the largest number where they have no fixed count
};
Result<Space> space_of(const std::filesystem::path& folder);

// In which the file system there gives out space.
Bytes block_of(const std::filesystem::path& folder);

Footprint footprint_of(const Entries& entries, Bytes block);

}  // namespace spark::staging
