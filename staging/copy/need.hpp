// Whether a copy fits, determined before its first byte.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// The part of a set that is shared with an earlier copy.
Footprint shared_of(const Entries& entries, const Resumed& resumed, Bytes block);
// Of the file or folder on the disk; zero if there is none.
Result<Footprint> footprint_of(const std::filesystem::path& path);
// Of the partial copy in the folder; zero if it is being removed, or can't be read.
Footprint footprint_of_partial(const std::filesystem::path& folder);

// The same for a display: as counted last if nothing was added since, or while it grows, within a minute. A
// partial copy may have millions of files.
Footprint footprint_of_partial_lately(const std::filesystem::path& folder, WallTime now, bool grows);

struct Need {
  Bytes bytes = 0;  // for the data still to be copied, with the file system's overhead
  std::uint64_t inodes = 0;
  Bytes stale = 0;  // in the partial area and no longer useful: freed before the copy begins
};
// For the entries, sorted by path, given the area's content from earlier attempts.
Need need_of(const Entries& entries, const Resumed& resumed, const PartialArea& area);

// Refused if the files are nearly all holes, and so long that hashing their zeros keeps the drive from others
// for many seconds: a user can make a petabyte of them in a moment.
Result<> check_holes(const Entries& entries, const std::string& shown);

// NoSpace with the numbers.
Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free);

}  // namespace spark::staging
