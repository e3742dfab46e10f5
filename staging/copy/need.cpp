#include "staging/copy/need.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "staging/files/space.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

// Overhead of the file system: maps and checksums of the data (btrfs: 0.2 %), and for each entry its inode,
// its name, and its lines in the journal and the manifest.
constexpr Bytes kDataOfOneOverhead = 512, kOverheadOfEntry = kKiB;

}  // namespace

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
  if (!space) return space.take_error();
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
