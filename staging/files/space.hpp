// A file system: its identity, its free space, and the space that files take on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// See is_other_file_system(). For an open file or folder; empty: unknown.
std::string file_system_of(int fd);

// False: the path leads to another mount than the open folder, as after that one was unmounted.
bool is_still_mounted(int folder, const std::filesystem::path& path);

// The same from its line in mountinfo. `identity`: "uuid:…" or "fsid:…", empty if nothing in it outlives a
// restart; not called where its source is its identity.
std::string file_system_named(const std::string& type, const std::string& source,
                              const std::function<std::string()>& identity);

struct Space {
  Bytes total = 0, free = 0;  // free: for new data, without the part reserved for root
  // inodes_*: the maximum value if the file system has no fixed number of inodes.
  std::uint64_t inodes_total = 0, inodes_free = 0;
};
Result<Space> space_of(const std::filesystem::path& folder);

// Allocation unit of the file system, in bytes.
Bytes block_of(const std::filesystem::path& folder);

Footprint footprint_of(const Entries& entries, Bytes block);

}  // namespace spark::staging
