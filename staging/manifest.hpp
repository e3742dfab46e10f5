// What a staged dataset consists of: every entry with its metadata and hash. The durable proof behind
// `ready`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::staging {

enum class EntryType { File, Folder, Symlink };

struct Entry {
  std::string path;  // below the root, raw bytes as the file system has them; "" is the root itself
  EntryType type = EntryType::File;
  Bytes size = 0;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0, gid = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;  // of the source
  std::uint64_t inode = 0;                  // of the source
  std::string hash;                         // files: XXH3-128 of the content, 32 hex digits
  std::string target;                       // symlinks: as read, never followed
};

struct Manifest {
  std::vector<Entry> entries;  // sorted by path

  Bytes bytes() const;          // of file content
  std::uint64_t files() const;  // regular files
  // XXH3-128 over the sorted entries (path, type, size, mode, target, hash): equal sets have equal hashes.
  std::string hash() const;
};

// JSON lines, one entry a line after a header line; names are kept byte for byte. The last line seals it: a
// manifest without it is Mismatch.
Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest);
Result<Manifest> read_manifest(const std::filesystem::path& path);

}  // namespace spark::staging
