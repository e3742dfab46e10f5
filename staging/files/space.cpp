#include "staging/files/space.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.hpp"

namespace spark::staging {

Result<Space> space_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return fail_errno(errno, "asking for the free space of " + printable(folder.native()));
  }
  Space space;
  space.total = static_cast<Bytes>(info.f_blocks) * info.f_frsize;
  space.free = static_cast<Bytes>(info.f_bavail) * info.f_frsize;
  const bool is_fixed = info.f_files != 0;  // btrfs and similar create inodes on demand
  space.inodes_total = is_fixed ? info.f_files : std::numeric_limits<std::uint64_t>::max();
  space.inodes_free = is_fixed ? info.f_favail : std::numeric_limits<std::uint64_t>::max();
  return space;
}

Bytes block_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  return ::statvfs(folder.c_str(), &info) == 0 ? std::max<Bytes>(kSmallestBlock, info.f_frsize)
                                               : kSmallestBlock;
}

Footprint footprint_of(const Entries& entries, Bytes block) {
  Footprint sum;
  for (const Entry& entry : entries) sum.add(entry, block);
  return sum;
}

}  // namespace spark::staging
