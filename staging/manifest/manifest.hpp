// What a staged dataset consists of: every entry with its metadata and hash. The durable proof behind
// `ready`.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest/hash.hpp"
#include "staging/manifest/raw_path.hpp"

namespace spark::staging {

enum class EntryType : std::uint8_t { File, Folder, Symlink };

// There may be a million of them in memory: 104 bytes and the path.
struct Entry {
  RawPath path;     // below the root, raw bytes as the file system has them; "" is the root itself
  RawPath target;   // symlinks: as read, never followed
  RawPath link_to;  // files: path of the earlier entry that this is another name (hard link) of
  Bytes size = 0;
  Bytes allocated = 0;                      // of its size, what its copy takes: all but holes
  std::int64_t mtime_ns = 0, ctime_ns = 0;  // of the source
  std::uint64_t inode = 0;                  // of the source
  Digest hash;                              // files: of the content, see kHashPiece
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t mode = 0;  // permission bits
  // Files: when the copy's content was last known to be right, written from its source or read back; seconds
  // since 1970. 0: not recorded, as in manifests of version 0.1.
  std::uint32_t good_at = 0;
  EntryType type = EntryType::File;
  bool operator==(const Entry&) const = default;
};

// Grows without moving what is there, and without room for as many again.
using Entries = std::deque<Entry>;

// Whether `now`, walked from the source, is what `then` was copied from. Files: size, mtime, ctime, inode.
// Symlinks: the target. Folders: mode and owner; their times change with temporary files that come and go.
bool is_same_source(const Entry& then, const Entry& now);

// Whether the entry has content of its own: a regular file that is not another one's further name.
bool is_content(const Entry& entry);

// Which object of the file system was published; an inode number alone comes back after a deletion.
struct RootIdentity {
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;
  bool operator==(const RootIdentity&) const = default;
};

struct ManifestHeader {
  std::string dataset;                  // its name; empty for a plain copy
  std::string source;                   // where it was read, raw bytes
  RootIdentity root;                    // of the copy
  std::uint64_t source_generation = 0;  // see Source, as the next
  bool is_doubtful = false;
};

struct Manifest : ManifestHeader {
  Entries entries;  // sorted by path; the first is the root
};

inline constexpr Bytes kSmallestBlock = 4 * kKiB;

// What a copy takes on a disk.
struct Footprint {
  Bytes bytes = 0;  // in whole blocks
  std::uint64_t inodes = 0;
  void add(const Entry& entry, Bytes block);
};

// What a manifest adds up to.
struct Summary {
  Bytes bytes = 0;          // of file content, a hard-linked file once
  std::uint64_t files = 0;  // regular files, by name
  Footprint footprint;
  std::uint32_t good_at = 0;  // the earliest of its files'; 0: not recorded
  // XXH3-128 over the sorted entries (path, type, size, mode, target, hash): equal sets have equal hashes.
  std::string hash;
};

class Summing {
 public:
  explicit Summing(Bytes block) : block_(block) {}
  void add(const Entry& entry);  // in the order of their paths
  Summary done();

 private:
  Bytes block_;  // of the file system that the copy is on
  Summary sum_;
  Hasher hasher_;
};

Summary summary_of(const Entries& entries, Bytes block = kSmallestBlock);

// JSON lines of plain ASCII: a header, one line an entry (names percent-encoded, so kept byte for byte), and
// the seal: the hash of all the lines before it. Without a right seal it is Mismatch.
std::string to_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text);

// Durable when it returns, and whole or absent at any time.
Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest);

}  // namespace spark::staging
