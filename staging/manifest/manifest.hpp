// The content of a staged dataset: every entry with its metadata and hash. The durable proof for the state
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
#include "staging/manifest/lines.hpp"
#include "staging/manifest/raw_path.hpp"

namespace spark::staging {

enum class EntryType : std::uint8_t { File, Folder, Symlink };

// Up to a million may be in memory: each takes 104 bytes and the path.
struct Entry {
  RawPath path;     // below the root, raw bytes as the file system has them; "" is the root itself
  RawPath target;   // symlinks: as read, never followed
  RawPath link_to;  // files: the path of an earlier entry, if this is another name (hard link) of it
  Bytes size = 0;
  Bytes allocated = 0;                      // bytes that its copy takes: all but holes
  std::int64_t mtime_ns = 0, ctime_ns = 0;  // of the source
  std::uint64_t inode = 0;                  // of the source
  Digest hash;                              // files: of the content, see kHashPiece
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t mode = 0;  // permission bits
  // Files: when the copy's content was last known to be right, either written from its source or read back;
  // in seconds since 1970. 0 means not recorded, as in manifests of version 0.1.
  std::uint32_t good_at = 0;
  EntryType type = EntryType::File;
  // The source has attributes or ACLs that the copy's file system did not take. Other hosts must not take the
  // copy for a file without any.
  bool lost_attributes = false;
  // A further name for which the copy's file system had no more links: in the copy it is a file of its own.
  bool is_apart = false;
  bool operator==(const Entry&) const = default;
};

// Grows without moving existing entries, and without reserving as much memory again.
using Entries = std::deque<Entry>;

// The entry of that path; none: nullptr, or `entries.size()`. The entries are in the order of their paths.
std::size_t index_of(const Entries& entries, std::string_view path);
Entry* find_entry(Entries& entries, std::string_view path);
const Entry* find_entry(const Entries& entries, std::string_view path);

// Whether `now`, walked from the source, is unchanged since `then` was copied. Compares for files:
// SourceIdentity and permissions. For symlinks: target, mtime, owner. For folders: mode and owner; their
// times change with temporary files.
bool is_same_source(const Entry& then, const Entry& now);

// Whether the entry has content of its own: a regular file that is not a further name of another one.
bool is_content(const Entry& entry);
// The same in the copy, which may have more files than its source.
bool is_content_of_copy(const Entry& entry);

// Identifies the published object of the file system; an inode number alone is reused after a deletion.
struct RootIdentity {
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;
  bool operator==(const RootIdentity&) const = default;
};

struct ManifestHeader {
  std::string dataset;                  // its name; empty for a plain copy
  std::string source;                   // its path when it was read, raw bytes
  RootIdentity root;                    // of the copy
  std::uint64_t source_generation = 0;  // see Source, also for the next field
  bool is_doubtful = false;
  std::string file_system;  // that the source was on, see is_other_file_system(); empty means unknown
  std::string origin;       // see Source::origin
  std::string definition;   // see Source::definition
  std::string model;        // of a model: its ModelRecord as text
};

struct Manifest : ManifestHeader {
  Entries entries;  // sorted by path; the first is the root
};

inline constexpr Bytes kSmallestBlock = 4 * kKiB;

// Space that a copy takes on a disk.
struct Footprint {
  Bytes bytes = 0;  // in whole blocks
  std::uint64_t inodes = 0;
  void add(const Entry& entry, Bytes block);
};

// Totals of a manifest.
struct Summary {
  Bytes bytes = 0;          // of file content, a hard-linked file once
  std::uint64_t files = 0;  // regular files, by name
  Footprint footprint;
  std::uint32_t good_at = 0;  // the oldest of its files; 0 means not recorded
  // XXH3-128 over the sorted entries (path, type, size, mode, target, hash): equal sets have equal hashes.
  std::string hash;
};

class Summing {
 public:
  explicit Summing(Bytes block) : block_(block) {}
  void add(const Entry& entry);  // in the order of the paths
  Summary done();

 private:
  Bytes block_;  // of the file system that the copy is on
  Summary sum_;
  Hasher hasher_;
};

Summary summary_of(const Entries& entries, Bytes block = kSmallestBlock);

// JSON lines of plain ASCII: a header, one line for each entry (names percent-encoded, so that every byte is
// kept), and the seal: the hash of all lines before it. A wrong or missing seal is Mismatch.
std::string to_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text);

// Durable when it returns; at any time the file is either complete or absent.
Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest, Readers readers = {});
// The same of entries that belong to the caller: those of a large set are not copied.
Result<> write_entries(const std::filesystem::path& path, const ManifestHeader& header,
                       const Entries& entries, Readers readers = {});

}  // namespace spark::staging
