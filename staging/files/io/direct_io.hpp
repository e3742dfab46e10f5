// Reads and writes that do not fill the page cache: direct, or buffered and dropped immediately if the file
// system refuses direct I/O.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/units.hpp"
#include "staging/files/io/page_cache.hpp"

namespace spark::staging {

// Offsets and lengths of direct I/O must be multiples of the file system's alignment. If that exceeds this
// value, the file is read and written buffered.
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

// Switches the descriptor to direct I/O if that works.
IoMode make_direct(int fd);

struct ReadOutcome {
  std::size_t bytes = 0;  // fewer than wanted at the end of the file
  int error = 0;          // errno
};

// Reads `want` bytes at `offset`, a multiple of the alignment. The buffer must have space for `want` rounded
// up to the alignment.
ReadOutcome read_at(int fd, const IoMode& mode, std::byte* into, std::size_t want, Bytes offset);

// Writes `bytes` at `offset`, zero-padded up to the alignment (the buffer must have the space). The caller
// truncates the file to its size at the end. Returns errno, or 0.
int write_at(int fd, const IoMode& mode, std::byte* from, std::size_t bytes, Bytes offset);

// A buffered write that starts its write-back immediately and drops its pages when the write-back ends,
// without further calls: RWF_DONTCACHE, Linux 6.14 and later, if the file system supports it. Returns as
// pwrite(); EOPNOTSUPP if it is not supported.
ssize_t write_uncached(int fd, const std::byte* from, std::size_t bytes, Bytes offset);

// Waits for the write-back of the range, then drops its pages. Returns errno, or 0.
int write_back_and_drop(int fd, Bytes offset, std::size_t bytes);

}  // namespace spark::staging
