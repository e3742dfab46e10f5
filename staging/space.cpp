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

constexpr Bytes kBlock = 4 * kKiB;  // what the smallest file or folder takes

}  // namespace

Result<Space> space_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return fail_errno(errno, "asking for the free space of " + printable(folder.native()));
  }
  Space space;
  space.free = static_cast<Bytes>(info.f_bavail) * info.f_frsize;
  space.inodes = info.f_files == 0 ? std::numeric_limits<std::uint64_t>::max() : info.f_favail;
  return space;
}

Need need_of(const std::vector<Entry>& entries, const Resumed& resumed, const PartialArea& area) {
  Need need;
  Bytes kept_bytes = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (resumed.finished[i]) {
      kept_bytes += entry.allocated;
    } else if (entry.link_to.empty() && !resumed.unchanged[i]) {
      ++need.inodes;
      if (entry.type == EntryType::File) need.bytes += round_up(entry.allocated, kBlock);
      if (entry.type == EntryType::Folder) need.bytes += kBlock;
    }
  }
  const Bytes there = size_of_partial(area.folder());
  need.stale = there - std::min(there, kept_bytes);
  return need;
}

Bytes size_of_partial(const std::filesystem::path& folder) {
  const StopFlag never{false};
  const auto tree = open_tree(folder / "data");
  if (!tree) return 0;
  const auto walked = walk(*tree, {}, never);
  if (!walked) return 0;
  Bytes sum = 0;
  for (const Entry& entry : walked->entries) sum += entry.link_to.empty() ? entry.allocated : 0;
  return sum;
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
  if (need.inodes > space->inodes) {
    return fail(Errc::NoSpace,
                "the copy needs " + std::to_string(need.inodes) + " inodes and the file system of " + where +
                    " has " + std::to_string(space->inodes) + " left",
                "delete files there, or choose a file system with more inodes");
  }
  return {};
}

}  // namespace spark::staging
