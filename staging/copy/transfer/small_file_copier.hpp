// Copies small files from one thread: some neighbours of a folder at a time, with the fewest calls.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/parent_dir_cache.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Files that a thread takes at once: neighbours in a folder. Their reads are asked for in one call, which
// lets the kernel make one request of files that lie side by side on the drive.
inline constexpr unsigned kFilesAtOnce = 32;

// Used by the thread that made it.
class SmallFileCopier {
 public:
  using Left = std::function<void(Entry*)>;

  SmallFileCopier(const CopyContext& context, IoKind kind, unsigned lanes, bool reads_direct);

  // Calls left(entry) for each that needs the long way (see copy_file).
  Result<> copy(std::span<Entry* const> files, const Left& left);
  // The same of one whose content is at `data`, wherever it came from. The entry gets its hash.
  Result<> write(Entry& entry, const std::byte* data);
  // Writes back what is held, in the order in which it was written, and drops it from the page cache.
  Result<> release();

 private:
  struct Reading {
    Entry* entry = nullptr;
    UniqueFd source;
    Request request{};
  };
  struct Held {
    UniqueFd fd;
    Bytes bytes;
    const Entry* entry;
  };

  const CopyContext& context_;
  bool reads_direct_;
  std::array<Reading, kFilesAtOnce> readings_;
  std::unique_ptr<Io> io_;  // ends before what it reads into is gone
  IoBuffer buffer_;
  ParentDirCache sources_, copies_;
  bool is_uncached_ = true;  // until the kernel says that it can't
  std::vector<Held> held_;
  Bytes held_bytes_ = 0;

  Result<> copy_together(std::span<Entry* const> files, const Left& left);
  UniqueFd open_source(const Entry& entry);
  std::size_t to_ask(const Entry& entry) const;
  void start(Reading& reading, unsigned lane);
  bool read_now(const Reading& reading);
  Result<bool> copy_read(Reading& reading, const std::byte* data);
  int write_at(int fd, const std::byte* data, Bytes bytes);
};

// Whether all small files can be read by direct I/O: they are on one file system, so what goes for the first
// goes for all.
bool reads_directly(const CopyContext& context, const std::vector<Entry*>& files);

}  // namespace spark::staging
