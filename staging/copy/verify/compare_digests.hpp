// Reads files and compares them with digests that others published.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {

// The findings of one reading of a file.
struct FileSums {
  std::string sha256;  // empty if it was not computed
  Digest content;      // as in a manifest
  bool is_as_published = false;
};

struct FileToRead {
  PublishedDigest digest;  // empty: it is only read
  bool needs_sha256 = false;
};

// Made one at a time, when they are read: a million would take 200 bytes each.
struct FilesToRead {
  std::size_t count = 0;
  std::function<FileToRead(std::size_t index)> file;  // called by several threads, also the next one
  std::optional<Bytes> bytes;  // of all of them; none means that they are counted first
  // For each file that was read, also if its digest is another one. `fd` is open for reading.
  std::function<void(std::size_t index, int fd, FileSums sums)> on_read{};
  // For each file that its drive can't read (is_medium_error), which is then a Mismatch. None: such an error
  // ends the reading.
  std::function<void(std::size_t index, int error)> on_unreadable{};
};

// Mismatch names the first files that differ or are missing. `on_read` gets the sums of all others.
Result<> read_and_compare(const Tree& tree, const FilesToRead& files, const CopyOptions& options,
                          Monitor& monitor, const StopFlag& stop);

// The same. `sums`: gets those of each file, in their order, also with a Mismatch; the SHA-256 of each, too.
Result<> compare_digests(const Tree& copy, const std::vector<PublishedDigest>& digests,
                         const CopyOptions& options, Monitor& monitor, const StopFlag& stop,
                         std::vector<FileSums>* sums = nullptr);

}  // namespace spark::staging
