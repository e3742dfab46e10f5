// Asynchronous reads and writes, many at a time from one thread: by io_uring, or one after the other if the
// kernel forbids it (containers, seccomp filters, emulators).
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "base/units.hpp"

namespace spark::staging {

// How large files are read and written: Auto is io_uring if the kernel allows it, else threads.
enum class IoKind { Auto, Uring, Threads };

struct Request {
  enum class Kind { Read, Write };
  Kind kind = Kind::Read;
  int fd = -1;
  std::byte* data = nullptr;  // in the buffer of its lane
  std::size_t bytes = 0;
  Bytes offset = 0;
  unsigned lane = 0;
  std::ptrdiff_t result = 0;  // bytes moved, possibly fewer than requested, or -errno
};

// The result of a request that nothing is known of: io_uring has stopped working.
inline constexpr std::ptrdiff_t kRequestLost = std::numeric_limits<std::ptrdiff_t>::min();

// Used only by the thread that created it. Each lane has a buffer and at most one request in progress.
class Io {
 public:
  virtual ~Io() = default;
  virtual unsigned lanes() const = 0;
  virtual std::span<std::byte> buffer(unsigned lane) = 0;  // aligned to kLargestAlignment
  virtual void start(Request& request) = 0;                // must stay at its address until wait() returns it
  virtual Request& wait() = 0;                             // one that ended; at least one must be in progress
};

// `buffer`: bytes of each lane, a multiple of kLargestAlignment. io_uring unless `kind` or the kernel rules
// it out; without io_uring there is one lane.
std::unique_ptr<Io> make_io(IoKind kind, unsigned lanes, std::size_t buffer);

// Whether this process may use io_uring.
bool has_io_uring();

}  // namespace spark::staging
