// What a staged dataset consists of: every entry with its metadata and hash. The durable proof behind
// `ready`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/hash.hpp"

namespace spark::staging {

enum class EntryType { File, Folder, Symlink };

struct Entry {
  std::string path;  // below the root, raw bytes as the file system has them; "" is the root itself
  EntryType type = EntryType::File;
  Bytes size = 0;
  Bytes allocated = 0;     // what it takes on a disk, holes left out
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0, gid = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;  // of the source
  std::uint64_t inode = 0;                  // of the source
  Digest hash;                              // files: of the content, see kHashPiece
  std::string target;                       // symlinks: as read, never followed
  std::string link_to;  // files: path of the earlier entry that this is another name (hard link) of
  bool operator==(const Entry&) const = default;
};

// Whether `now`, walked from the source, is what `then` was copied from. Files: size, mtime, ctime, inode.
// Symlinks: the target. Folders: mode and owner; their times change with temporary files that come and go.
bool is_same_source(const Entry& then, const Entry& now);

// Which object of the file system was published; an inode number alone comes back after a deletion.
struct RootIdentity {
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;
  bool operator==(const RootIdentity&) const = default;
};

struct Manifest {
  std::string dataset;         // its name; empty for a plain copy
  std::string source;          // where it was read, raw bytes
  RootIdentity root;           // of the copy
  std::vector<Entry> entries;  // sorted by path; the first is the root

  Bytes bytes() const;          // of file content, a hard-linked file once
  Bytes allocated() const;      // on the disk
  std::uint64_t files() const;  // regular files, by name
  // XXH3-128 over the sorted entries (path, type, size, mode, target, hash): equal sets have equal hashes.
  std::string hash() const;
};

// Whether a walk of the source found just what the manifest was copied from.
bool is_same_source(const Manifest& then, const std::vector<Entry>& now);

// JSON lines of plain ASCII: a header, one line an entry (names percent-encoded, so kept byte for byte), and
// the seal: the hash of all the lines before it. Without a right seal it is Mismatch.
std::string to_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text);

// Durable when it returns, and whole or absent at any time.
Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest);
Result<Manifest> read_manifest(const std::filesystem::path& path);

}  // namespace spark::staging
