// Whether a copy fits, told in numbers before its first byte.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// The part of a set that an earlier copy has already, shared.
Footprint shared_of(const Entries& entries, const Resumed& resumed, Bytes block);
// Of the partial copy in the folder, as far as it got; nothing if there is none, or it is just going away.
Footprint footprint_of_partial(const std::filesystem::path& folder);

struct Need {
  Bytes bytes = 0;  // for what still has to be copied, with what the file system needs to keep it
  std::uint64_t inodes = 0;
  Bytes stale = 0;  // in the partial area, of no use any more: freed before the copy begins
};
// Of the entries, sorted by path, when the area has what it has from earlier attempts.
Need need_of(const Entries& entries, const Resumed& resumed, const PartialArea& area);

// NoSpace with the numbers.
Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free);

}  // namespace spark::staging
