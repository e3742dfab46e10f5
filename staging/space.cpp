#include "staging/space.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.hpp"
#include "staging/direct_io.hpp"
#include "staging/fill.hpp"
#include "staging/walk.hpp"

namespace spark::staging {
namespace {

// What a file system needs for itself: maps and checksums of the data (btrfs: 0.2 %), and of an entry its
// inode, its name, and its lines in the journal and the manifest.
constexpr Bytes kDataOfOneOverhead = 512, kOverheadOfEntry = kKiB;

}  // namespace

Result<Space> space_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return fail_errno(errno, "asking for the free space of " + printable(folder.native()));
  }
  Space space;
  space.total = static_cast<Bytes>(info.f_blocks) * info.f_frsize;
  space.free = static_cast<Bytes>(info.f_bavail) * info.f_frsize;
  const bool is_fixed = info.f_files != 0;  // btrfs and the like make inodes as they need them
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

Footprint shared_of(const Entries& entries, const Resumed& resumed, Bytes block) {
  Footprint sum;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (resumed.unchanged[i]) sum.add(entries[i], block);
  }
  return sum;
}

Footprint footprint_of_partial(const std::filesystem::path& folder) {
  const StopFlag never{false};
  const auto tree = open_tree(folder / "data");
  if (!tree) return {};
  const auto sum = footprint_below(*tree, never);
  return sum ? *sum : Footprint{};
}

Need need_of(const Entries& entries, const Resumed& resumed, const PartialArea& area) {
  const Bytes block = block_of(area.folder());
  Footprint need, kept;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (resumed.finished[i]) {
      kept.add(entry, block);
    } else if (!resumed.unchanged[i]) {
      need.add(entry, block);
    }
  }
  const Bytes there = footprint_of_partial(area.folder()).bytes;
  const Bytes overhead = need.bytes / kDataOfOneOverhead + need.inodes * kOverheadOfEntry;
  return {need.bytes + overhead, need.inodes, there - std::min(there, kept.bytes)};
}

Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free) {
  auto space = space_of(folder);
  if (!space) return tl::unexpected<Error>(space.error());
  space->free += need.stale;
  const std::string where = printable(folder.native());
  if (need.bytes > space->free || space->free - need.bytes < keep_free) {
    const Bytes missing = need.bytes + keep_free - space->free;
    const std::string reserve =
        keep_free > 0 ? ", of which " + format_bytes(keep_free) + " have to stay free" : "";
    return fail(Errc::NoSpace,
                "the copy needs " + format_bytes(need.bytes) + " and " + where + " has " +
                    format_bytes(space->free) + " free" + reserve,
                "free " + format_bytes(missing) + " there, or choose another place");
  }
  if (need.inodes > space->inodes_free) {
    return fail(Errc::NoSpace,
                "the copy needs " + std::to_string(need.inodes) + " inodes and the file system of " + where +
                    " has " + std::to_string(space->inodes_free) + " left",
                "delete files there, or choose a file system with more inodes");
  }
  return {};
}

}  // namespace spark::staging
