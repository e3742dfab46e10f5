#include "daemon/mounts/guard.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/mount_point.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 3;
// <sys/mount.h> and <linux/mount.h> can't both be included with glibc 2.36.
constexpr unsigned kClone = 1, kCloseOnExec = O_CLOEXEC;

std::string in_words(const fs::path& path) {
  return printable(path.native());
}

// The mount that contains the folder itself: the parent of the lowest one at `target`.
const Mount* mount_below(const std::vector<Mount>& table, const fs::path& target) {
  const auto at_target = [&](const Mount& mount) { return mount.target == target; };
  const auto find = [&](int id) { return std::ranges::find(table, id, &Mount::id); };
  auto lowest = std::ranges::find_if(table, at_target);
  while (lowest != table.end() && at_target(*lowest)) lowest = find(lowest->parent_id);
  return lowest == table.end() ? nullptr : &*lowest;
}

// Its path leads to this mount, not to one that covers it.
bool is_reached_by_path(const Mount& mount) {
  struct statx seen {};
  return ::statx(AT_FDCWD, mount.target.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID,
                 &seen) == 0 &&
         seen.stx_mnt_id == static_cast<std::uint64_t>(mount.id);
}

// The folder is the root of a mount, not a folder below.
bool is_root_of_mount(const UniqueFd& folder) {
  struct statx seen {};
  return ::statx(folder.get(), "", AT_EMPTY_PATH, 0, &seen) != 0 ||
         (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// The folder itself, even if something is mounted on it: accessed through a copy of the mount below, without
// the mounts on top.
Result<UniqueFd> open_folder(const fs::path& target, const std::vector<Mount>& table) {
  constexpr int kHow = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const std::string doing = "opening the mount point " + in_words(target);
  const bool is_hidden = mounted_at(table, target) == nullptr && !stack_at(table, target).empty();
  if (is_hidden) return fail(Errc::Unsupported, doing + ": a mount over one of its parent folders hides it");
  if (mounted_at(table, target) == nullptr) {
    const auto point = open_mount_point(target);
    if (!point) return fail_with(point.error(), doing);
    UniqueFd folder(::openat(point->get(), ".", kHow));
    if (!folder) return fail_errno(errno, doing);
    if (is_root_of_mount(folder))
      return fail(Errc::Unavailable, doing + ": a file system was mounted there meanwhile");
    return folder;
  }
  const Mount* below = mount_below(table, target);
  if (below == nullptr || !is_reached_by_path(*below))
    return fail(Errc::Unsupported, doing + ": it can't be reached below the mount that covers it");
  const UniqueFd copy(
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, below->target.c_str(), kClone | kCloseOnExec)));
  if (!copy) return fail_errno(errno, doing + " below the mount that covers it");
  UniqueFd folder(::openat(copy.get(), target.lexically_relative(below->target).c_str(), kHow));
  if (!folder) return fail_errno(errno, doing + " below the mount that covers it");
  return folder;
}

// A few names, to show, and one more, to tell that there are others.
Result<std::vector<std::string>> names_in(const UniqueFd& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(held_path(folder), error);
  for (; !error && entry != fs::directory_iterator() && names.size() <= kMostFiles; entry.increment(error))
    names.push_back(entry->path().filename());
  if (error) return fail_errno(error.value(), "listing a mount point");
  return names;
}

// A record's file name; its link text is the path.
fs::path record_of(const fs::path& records, const fs::path& target) {
  std::string name;
  for (const char c : target.native())
    name += c == '/' ? std::string("%2F") : c == '%' ? "%25" : std::string(1, c);
  return records / name;
}

bool is_recorded(const fs::path& records, const fs::path& target) {
  std::error_code error;
  return fs::read_symlink(record_of(records, target), error) == target && !error;
}

Result<> write_record(const fs::path& records, const fs::path& target) {
  std::error_code error;
  fs::create_directories(records, error);
  const fs::path link = record_of(records, target);
  if (::symlink(target.c_str(), link.c_str()) != 0 && errno != EEXIST)
    return fail_errno(errno, "recording the guard of " + in_words(target));
  return flush_folder(records);
}

Result<int> attributes_of(const UniqueFd& folder) {
  int flags = 0;  // the kernel writes an int, despite the type in the request's number
  if (::ioctl(folder.get(), FS_IOC_GETFLAGS, &flags) != 0)
    return fail_errno(errno, "reading a mount point's attributes");
  return flags;
}

std::string why_not(int error, const fs::path& target) {
  const std::string effect =
      "programs can write to " + in_words(target) + " while it is not mounted, to the disk below it: ";
  if (error == ENOTTY || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL)
    return effect + "its file system has no immutable attribute - put the mount point on ext4, xfs or btrfs";
  return effect + "the immutable attribute can't be set: " + std::generic_category().message(error);
}

// Recorded before it is set: a crash in between leaves only an unneeded record.
std::string close_gap(const UniqueFd& folder, const GuardRequest& request) {
  const auto flags = attributes_of(folder);
  if (!flags) return why_not(flags.error().number, request.mount_point);
  // Set by this program, or by an administrator; the latter stays.
  if ((*flags & FS_IMMUTABLE_FL) != 0) return "";
  if (auto recorded = write_record(request.records, request.mount_point); !recorded)
    return why_not(recorded.error().number, request.mount_point);
  const int wanted = *flags | FS_IMMUTABLE_FL;
  if (::ioctl(folder.get(), FS_IOC_SETFLAGS, &wanted) == 0 || errno == EROFS) return "";
  return why_not(errno, request.mount_point);
}

Result<> remove_guard(const fs::path& target, const std::vector<Mount>& table) {
  const auto folder = open_folder(target, table);
  if (!folder) {
    if (folder.error().kind == Errc::NotFound) return {};
    return folder.take_error();
  }
  const auto flags = attributes_of(*folder);
  if (!flags) return {};  // a file system without attributes
  const int wanted = *flags & ~FS_IMMUTABLE_FL;
  if (wanted == *flags || ::ioctl(folder->get(), FS_IOC_SETFLAGS, &wanted) == 0) return {};
  return fail_errno(errno, "removing the immutable attribute of " + in_words(target),
                    "`chattr -i " + in_words(target) + "` removes it");
}

}  // namespace

Result<Guard> guard_mount_point(const GuardRequest& request) {
  const auto table = read_mount_table({});
  if (!table) return table.take_error();
  if (stack_at(*table, request.mount_point).empty()) {
    if (auto made = make_mount_point(request.mount_point); !made) return made.take_error();
  }
  const auto folder = open_folder(request.mount_point, *table);
  if (!folder) return folder.take_error();
  auto names = names_in(*folder);
  if (!names) return names.take_error();
  Guard guard;
  guard.files = std::move(*names);
  guard.is_ours =
      guard.files.empty() || request.is_in_use || is_recorded(request.records, request.mount_point);
  if (guard.is_ours) guard.gap = close_gap(*folder, request);
  return guard;
}

Result<> remove_guards(const fs::path& records, const std::set<fs::path>& keep) {
  Result<> first_failure;
  const auto table = read_mount_table({});
  if (!table) return table.take_error();
  for (const fs::path& record : list_folder(records)) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(record, no_link);
    if (no_link || keep.contains(target)) continue;
    auto removed = remove_guard(target, *table);
    if (removed) fs::remove(record, no_link);
    if (!removed && first_failure) first_failure = std::move(removed);
  }
  return first_failure;
}

}  // namespace spark::mounts
