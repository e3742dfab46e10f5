// What to read where nothing may be written: the largest regular files below a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/fio/fio_job.hpp"

namespace spark::bench {

inline constexpr std::size_t kMostFolders = 1000;

// The walk stays on the folder's own file system, follows no symbolic link and ends at these limits.
struct WalkLimits {
  std::size_t files = 32;          // taken at most, the largest first
  std::uint64_t entries = 20'000;  // looked at
  unsigned depth = 12;             // folders below the first
  Duration time{5000};
  Bytes at_least = 4096;  // smaller files don't count
  Bytes at_most = ~Bytes{0};
  std::optional<std::uint64_t> sample = {};  // a seed: takes files at random instead of the largest
  Bytes folder_at_most = 0;                  // of each of FoundFiles::folders
};

struct FoundFiles {
  std::vector<DataFile> files;    // the largest first; of a sample in random order
  std::vector<DataFile> folders;  // with their bytes, at most kMostFolders: with files alone, no more than
                                  // `folder_at_most`
  Bytes bytes = 0;
  std::uint64_t entries = 0;  // looked at
  Bytes all_bytes = 0;        // of every regular file, of any size
  std::uint64_t all_files = 0;
  bool complete = true;      // false: a limit ended the walk
  std::uint64_t sparse = 0;  // passed over: mostly holes, which read as zeros without touching the storage
};

// Blocks on the path: run it apart. Folders and files that may not be read are passed over.
FoundFiles find_files(const std::string& folder, const WalkLimits& limits);

}  // namespace spark::bench
