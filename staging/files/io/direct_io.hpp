// Reads and writes that leave the page cache alone: direct, or buffered and dropped at once where the file
// system refuses direct I/O.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/units.hpp"

namespace spark::staging {

// Offsets and lengths of direct I/O have to be multiples of the alignment the file system asks for; of this
// at most, or the file is read and written buffered.
inline constexpr std::size_t kLargestAlignment = 64 * kKiB;

class IoBuffer {
 public:
  explicit IoBuffer(std::size_t size);  // a multiple of kLargestAlignment, aligned to it
  std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_;
};

struct IoMode {
  bool direct = false;
  std::size_t alignment = 4096;  // of offsets and lengths
};

// Switches the descriptor to direct I/O where that works.
IoMode make_direct(int fd);

struct ReadOutcome {
  std::size_t bytes = 0;  // fewer than wanted: the file ended
  int error = 0;          // errno
};

// Reads `want` bytes at `offset`, a multiple of the alignment. The buffer has room for `want` rounded up to
// it.
ReadOutcome read_at(int fd, const IoMode& mode, std::byte* into, std::size_t want, Bytes offset);

// Writes `bytes` at `offset`, zero-padded up to the alignment (the buffer has room): the caller cuts the file
// to its size at the end. Gives errno, or 0.
int write_at(int fd, const IoMode& mode, std::byte* from, std::size_t bytes, Bytes offset);

// A buffered write whose write-back begins at once, and whose pages leave the cache when it ends, with no
// more calls: RWF_DONTCACHE, Linux 6.14 and later, where the file system has it. As pwrite(); EOPNOTSUPP
// where it is not to be had.
ssize_t write_uncached(int fd, const std::byte* from, std::size_t bytes, Bytes offset);

// Of a buffered file: takes what was read, or written and written back by now, out of the page cache.
void drop_pages(int fd, Bytes offset, std::size_t bytes);
// Waits for the write-back of what was written, then drops it. Gives errno, or 0.
int write_back_and_drop(int fd, Bytes offset, std::size_t bytes);

}  // namespace spark::staging
