#include "staging/files/io/direct_io.hpp"
#include "base/units.hpp"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace spark::staging {
namespace {

constexpr std::size_t kHugePage = 2 * kMiB;  // of x86-64, and of arm64 with pages of 4 KiB

constexpr std::size_t alignment_for(std::size_t size) {
  return size >= kHugePage ? kHugePage : kLargestAlignment;
}

// The file's alignment for direct I/O; 0 if that is not possible.
std::size_t direct_alignment(int fd) {
  struct statx info {};
  const bool told =
      ::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) != 0;
  if (!told) return 4096;
  if (info.stx_dio_offset_align == 0 || info.stx_dio_mem_align == 0) return 0;
  const std::size_t alignment =
      std::max<std::size_t>({info.stx_dio_offset_align, info.stx_dio_mem_align, 4096});
  return alignment <= kLargestAlignment && std::has_single_bit(alignment) ? alignment : 0;
}

// Some file systems accept the flag and refuse the request: the descriptor then becomes buffered, for all
// threads.
bool retry_buffered(int fd, const IoMode& mode, int error, bool& retried) {
  if (error != EINVAL || !mode.direct || retried) return false;
  retried = true;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

}  // namespace

IoBuffer::IoBuffer(std::size_t size) : size_(size) {
  void* bytes = nullptr;  // std::aligned_alloc requires a multiple of the alignment as size
  if (::posix_memalign(&bytes, alignment_for(size), size) != 0) throw std::bad_alloc();
  bytes_.reset(static_cast<std::byte*>(bytes));
  // Hashing is limited by memory, not by the CPU; half of the wait is for address translation of small pages.
  if (size >= kHugePage) ::madvise(bytes_.get(), size, MADV_HUGEPAGE);
}

IoMode make_direct(int fd) {
  const std::size_t alignment = direct_alignment(fd);
  if (alignment == 0) return {};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_DIRECT) != 0) return {};
  return {true, alignment};
}

ssize_t write_uncached(int fd, const std::byte* from, std::size_t bytes, Bytes offset) {
  constexpr int kDontCache = 0x80;  // RWF_DONTCACHE of linux/fs.h, not in Debian 12 yet
  const iovec vector{const_cast<std::byte*>(from), bytes};
  return ::pwritev2(fd, &vector, 1, static_cast<off_t>(offset), kDontCache);
}

int write_back_and_drop(int fd, Bytes offset, std::size_t bytes) {
  constexpr unsigned kNow = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const bool failed = ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), kNow) != 0;
  // Other errors: not supported here.
  const int number = failed && (errno == EIO || errno == ENOSPC || errno == EDQUOT) ? errno : 0;
  drop_pages(fd, offset, bytes);
  return number;
}

ReadOutcome read_at(int fd, const IoMode& mode, std::byte* into, std::size_t want, Bytes offset) {
  bool retried = false;
  std::size_t done = 0;
  std::size_t ended_at = SIZE_MAX;  // a direct read of an unaligned length has reached the end
  while (done < want) {
    const std::size_t ask = mode.direct ? rounded_up(want - done, mode.alignment) : want - done;
    const ssize_t got = ::pread(fd, into + done, ask, static_cast<off_t>(offset + done));
    if (got < 0 && (errno == EINTR || retry_buffered(fd, mode, errno, retried))) continue;
    if (got < 0) return {done, errno};
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
    if (!mode.direct || done >= want || done % mode.alignment == 0) continue;
    if (done == ended_at) break;
    ended_at = done;
    done = round_down(done, mode.alignment);
  }
  if (ended_at != SIZE_MAX && done < want) done = std::max(done, ended_at);
  done = std::min(done, want);
  if (!mode.direct) drop_pages(fd, offset, done);
  return {done, 0};
}

int write_at(int fd, const IoMode& mode, std::byte* from, std::size_t bytes, Bytes offset) {
  std::size_t length = bytes;
  if (mode.direct) {
    length = rounded_up(bytes, mode.alignment);
    std::memset(from + bytes, 0, length - bytes);
  }
  bool retried = false;
  for (std::size_t done = 0; done < length;) {
    const ssize_t wrote = ::pwrite(fd, from + done, length - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && (errno == EINTR || retry_buffered(fd, mode, errno, retried))) continue;
    if (wrote < 0) return errno;
    if (wrote == 0) return EIO;
    done += static_cast<std::size_t>(wrote);
    if (mode.direct && done < length) done = round_down(done, mode.alignment);
  }
  if (mode.direct) return 0;
  return write_back_and_drop(fd, offset, bytes);
}

}  // namespace spark::staging
