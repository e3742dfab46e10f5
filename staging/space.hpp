// Whether a copy fits, told in numbers before its first byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest.hpp"

namespace spark::staging {

struct Space {
  Bytes free = 0;            // for new data, without what the file system reserves for root
  std::uint64_t inodes = 0;  // free; the largest number where the file system has no fixed count
};
Result<Space> space_of(const std::filesystem::path& folder);

struct Need {
  Bytes bytes = 0;
  std::uint64_t inodes = 0;
};
// Of what still has to be copied: all entries but those in `kept`. Both sorted by path.
Need need_of(const std::vector<Entry>& entries, const std::vector<Entry>& kept);

// NoSpace with the numbers.
Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free);

}  // namespace spark::staging
