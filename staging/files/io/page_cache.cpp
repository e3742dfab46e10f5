#include "staging/files/io/page_cache.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace spark::staging {
namespace {

// Of linux/mman.h and asm-generic/unistd.h, not in Debian 12 yet.
constexpr long kCachestat = 451;
struct CachestatRange {
  std::uint64_t offset = 0, length = 0;  // length 0 means to the end
};
struct Cachestat {
  std::uint64_t cached = 0, dirty = 0, written_back = 0, evicted = 0, recently_evicted = 0;
};

constexpr Bytes kPiece = kMiB;
constexpr Bytes kPieces = 64;

Bytes page_size() {
  return static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

// In a piece that begins at a multiple of the page size.
Bytes cached_in(int fd, Bytes offset, Bytes bytes) {
  void* const map = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (map == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((bytes + page_size() - 1) / page_size());
  const bool is_known = ::mincore(map, bytes, pages.data()) == 0;
  ::munmap(map, bytes);
  if (!is_known) return 0;
  return static_cast<Bytes>(std::ranges::count_if(pages, [](auto page) { return (page & 1) != 0; })) *
         page_size();
}

}  // namespace

Bytes cached_bytes_by_mincore(int fd, Bytes size) {
  if (size == 0) return 0;
  if (size <= kPieces * kPiece) return std::min(size, cached_in(fd, 0, size));
  Bytes found = 0;
  for (Bytes i = 0; i < kPieces; ++i)
    found += cached_in(fd, (size - kPiece) / (kPieces - 1) * i / kPiece * kPiece, kPiece);
  return static_cast<Bytes>(static_cast<double>(size) * static_cast<double>(found) / (kPieces * kPiece));
}

Bytes cached_bytes(int fd, Bytes size) {
  const CachestatRange all;
  Cachestat found;
  if (::syscall(kCachestat, fd, &all, &found, 0) != 0) return cached_bytes_by_mincore(fd, size);
  return std::min(size, found.cached * page_size());
}

void drop_pages(int fd, Bytes offset, Bytes bytes) {
  ::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

std::optional<bool> is_open_elsewhere(int fd) {
  // A process that opens the file now makes the kernel send a signal: SIGURG is ignored, SIGIO would end this
  // process.
  if (::fcntl(fd, F_SETSIG, SIGURG) != 0) return std::nullopt;
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
    if (errno == EAGAIN) return true;
    const bool has_none = errno == EINVAL || errno == EOPNOTSUPP || errno == EACCES || errno == EPERM;
    return has_none ? std::optional(false) : std::nullopt;
  }
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace spark::staging
