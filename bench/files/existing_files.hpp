// Finds files to read on a path that may not be written: the largest regular files below a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/fio/fio_job.hpp"

namespace spark::bench {

inline constexpr std::size_t kMostFolders = 1000;

// The walk stays on the folder's own file system, follows no symbolic link and stops at these limits.
struct WalkLimits {
  std::size_t files = 32;          // files to keep, largest first
  std::uint64_t entries = 20'000;  // entries to visit
  unsigned depth = 12;             // levels below the first folder
  Duration time{5000};
  Bytes at_least = 4096;  // smaller files are ignored
  Bytes at_most = ~Bytes{0};
  std::optional<std::uint64_t> sample = {};  // a seed; if set, files are chosen at random instead of by size
  Bytes folder_at_most = 0;                  // size limit for each of FoundFiles::folders
};

struct FoundFiles {
  std::vector<DataFile> files;    // largest first; a sample is in random order
  std::vector<DataFile> folders;  // with their bytes, at most kMostFolders; only folders that contain files
                                  // alone, up to `folder_at_most` bytes
  Bytes bytes = 0;
  std::uint64_t entries = 0;  // visited
  Bytes all_bytes = 0;        // of all regular files of any size
  std::uint64_t all_files = 0;
  bool complete = true;      // false if a limit ended the walk
  std::uint64_t sparse = 0;  // skipped: mostly holes, which read as zeros without touching the storage
};
SPARK_MESSAGE(FoundFiles, (files, folders, bytes, entries, all_bytes, all_files, complete, sparse));

// Blocks on the path: run it in a child (process.hpp). Unreadable folders and files are skipped.
FoundFiles find_files(const std::string& folder, const WalkLimits& limits);

}  // namespace spark::bench
