// Whether a copy fits, told in numbers before its first byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest.hpp"
#include "staging/partial_area.hpp"
#include "staging/resume.hpp"

namespace spark::staging {

struct Space {
  Bytes free = 0;            // for new data, without what the file system reserves for root
  std::uint64_t inodes = 0;  // free; the largest number where the file system has no fixed count
};
Result<Space> space_of(const std::filesystem::path& folder);

struct Need {
  Bytes bytes = 0;  // for what still has to be copied
  std::uint64_t inodes = 0;
  Bytes stale = 0;  // in the partial area, of no use any more: freed before the copy begins
};
// Of the entries, sorted by path, when the area has what it has from earlier attempts.
Need need_of(const std::vector<Entry>& entries, const Resumed& resumed, const PartialArea& area);

// What the partial copy in the folder takes; 0 if there is none, or it is just going away.
Bytes size_of_partial(const std::filesystem::path& folder);

// NoSpace with the numbers.
Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free);

}  // namespace spark::staging
