#include "migration/survey/local_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFollowed = 40;  // links, as the kernel follows

// File systems that answer without another host or program.
bool is_local_type(const std::string& type) {
  constexpr std::array<std::string_view, 14> kLocal = {"ext2",     "ext3",  "ext4",    "xfs",   "btrfs",
                                                       "zfs",      "f2fs",  "vfat",    "tmpfs", "ramfs",
                                                       "squashfs", "erofs", "overlay", "rootfs"};
  return std::ranges::find(kLocal, type) != kLocal.end();
}

}  // namespace

LocalFiles::LocalFiles(SystemRoot root, const std::vector<mounts::Mount>& mounts,
                       const std::vector<FabricDevice>& devices)
    : root_(std::move(root)) {
  for (const mounts::Mount& mount : mounts) {
    const bool is_local = is_local_type(mount.type) && fabric_below(root_, devices, mount.source) == nullptr;
    if (!is_local) closed_.insert(mount.target);
  }
}

// One name after the other, as the kernel goes, without a step onto a closed mount.
Result<fs::path> LocalFiles::real_path(const fs::path& path) const {
  std::vector<fs::path> left;  // the next one is the last
  const auto add = [&](const fs::path& more) {
    const fs::path below = more.relative_path();
    const std::vector<fs::path> parts(below.begin(), below.end());
    left.insert(left.end(), parts.rbegin(), parts.rend());
  };
  add(path);
  fs::path at = "/";
  for (int links = 0; !left.empty() && links <= kMostFollowed;) {
    const fs::path part = std::move(left.back());
    left.pop_back();
    if (part.empty() || part == ".") continue;
    const fs::path next = part == ".." ? at.parent_path() : at / part;
    if (closed_.contains(next) && next != "/")
      return fail(Errc::Unavailable, printable(path.native()) + " is below the mount point " +
                                         printable(next.native()) + ", and is not looked at");
    std::error_code error;
    const fs::path link = fs::read_symlink(root_ / next.relative_path().native(), error);
    if (error) {
      at = next;
      continue;
    }
    ++links;
    if (link.is_absolute()) at = "/";
    add(link);
  }
  if (!left.empty()) return fail_errno(ELOOP, "following the links of " + printable(path.native()));
  return at;
}

Result<std::string> LocalFiles::read(const fs::path& path, std::size_t limit) const {
  const auto real = real_path(path);
  if (!real) return real.take_error();
  const fs::path file = root_ / real->relative_path().native();
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return fail_errno(errno, "looking at " + printable(path.native()));
  if (!S_ISREG(info.st_mode)) return fail(Errc::Invalid, printable(path.native()) + " is no regular file");
  return read_regular_file(file, limit);
}

}  // namespace spark::host
