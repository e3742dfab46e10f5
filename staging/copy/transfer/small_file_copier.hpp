// Copies small files from one thread: several neighbours of a folder at a time, with as few system calls as
// possible.
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

// Files that a thread takes at a time: neighbours in a folder. Their reads are submitted in one call, so that
// the kernel can merge requests for adjacent files on the drive.
inline constexpr unsigned kFilesAtOnce = 32;

// Used only by the thread that created it.
class SmallFileCopier {
 public:
  using Left = std::function<void(Entry*)>;

  SmallFileCopier(const CopyContext& context, IoKind kind, unsigned lanes, bool reads_direct);

  // Calls left(entry) for each file that needs copy_file. `is_booked`: the throttle was waited for.
  Result<> copy(std::span<Entry* const> files, const Left& left, bool is_booked = false);
  // The same for one file with its content at `data`, from any source. The entry gets its hash.
  Result<> write(Entry& entry, const std::byte* data);
  // Whether the source's file has neither attributes nor ACLs; false also if it can't be opened.
  bool is_plain_at_source(const Entry& entry);
  // Writes back the held files, in the order in which they were written, and drops them from the page cache.
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
  std::unique_ptr<Io> io_;  // after readings_, so that it ends before them
  IoBuffer buffer_;
  ParentDirCache sources_, copies_;
  bool is_uncached_ = true;  // until the kernel refuses it
  std::vector<Held> held_;
  Bytes held_bytes_ = 0;

  Result<> copy_together(std::span<Entry* const> files, const Left& left, bool is_booked);
  UniqueFd open_source(const Entry& entry);
  std::size_t to_ask(const Entry& entry) const;
  void start(Reading& reading, unsigned lane);
  bool read_now(const Reading& reading);
  Result<bool> copy_read(Reading& reading, const std::byte* data);
  int write_at(int fd, const std::byte* data, Bytes bytes);
};

// Whether all small files can be read by direct I/O. They are on one file system, so the first file decides
// for all.
bool reads_directly(const CopyContext& context, const std::vector<Entry*>& files);

}  // namespace spark::staging
