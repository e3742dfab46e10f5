#include "staging/space.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.hpp"
#include "staging/direct_io.hpp"

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

Need need_of(const std::vector<Entry>& entries, const std::vector<Entry>& kept) {
  Need need;
  auto known = kept.begin();
  for (const Entry& entry : entries) {
    while (known != kept.end() && known->path < entry.path) ++known;
    const bool is_there = known != kept.end() && known->path == entry.path;
    if (is_there || !entry.link_to.empty()) continue;
    ++need.inodes;
    if (entry.type == EntryType::File) need.bytes += round_up(entry.allocated, kBlock);
    if (entry.type == EntryType::Folder) need.bytes += kBlock;
  }
  return need;
}

Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free) {
  const auto space = space_of(folder);
  if (!space) return tl::unexpected<Error>(space.error());
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
