#include "staging/files/entry_scanner.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.hpp"
#include "staging/files/holes.hpp"
#include "staging/files/times.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLongestPath = 32 * kKiB;
constexpr unsigned kWanted = STATX_BASIC_STATS;

const char* special_kind(unsigned mode) {
  if (S_ISFIFO(mode)) return "FIFO";
  if (S_ISSOCK(mode)) return "socket";
  if (S_ISBLK(mode)) return "block device";
  if (S_ISCHR(mode)) return "character device";
  return nullptr;
}

}  // namespace

void fill(Entry& entry, const struct statx& info, const Tree& tree) {
  entry.mode = info.stx_mode & 07777;
  entry.uid = info.stx_uid;
  entry.gid = info.stx_gid;
  entry.mtime_ns = nanoseconds(info.stx_mtime);
  entry.ctime_ns = tree.has_ctime ? nanoseconds(info.stx_ctime) : 0;
  entry.inode = info.stx_ino;
  entry.type = S_ISDIR(info.stx_mode)   ? EntryType::Folder
               : S_ISLNK(info.stx_mode) ? EntryType::Symlink
                                        : EntryType::File;
  if (entry.type != EntryType::File) return;
  entry.size = info.stx_size;
  entry.allocated = std::min<Bytes>(info.stx_blocks * 512, info.stx_size);
  entry.mode &= tree.file_mode_mask;
}

std::string noted_name(const Tree& tree, std::string_view path) {
  constexpr unsigned kOpenToOthers = S_IROTH | S_IXOTH;
  for (std::size_t end = 0; tree.is_told_to_others && end != std::string_view::npos && !path.empty();
       end = path.find('/', end + 1)) {
    const std::string above(path.substr(0, end));
    const UniqueFd folder = open_beneath(tree, above, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    struct stat info {};
    if (!folder || ::fstat(folder.get(), &info) != 0 || (info.st_mode & kOpenToOthers) != kOpenToOthers)
      return (above.empty() ? "" : printable(above) + "/") + "…";
  }
  return printable(path);
}

FileId file_id(const struct statx& info) {
  return {std::uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor, info.stx_ino};
}

Result<> EntryScanner::at_root(Found& found) const {
  const UniqueFd root = open_beneath(tree_, "", O_PATH | O_NOFOLLOW);
  struct statx info {};
  if (!root || ::statx(root.get(), "", AT_EMPTY_PATH, kWanted, &info) != 0) {
    return fail_errno(errno, "reading " + tree_.shown(""));
  }
  return add("", info, root.get(), "", found);
}

Result<> EntryScanner::at(int folder, const std::string& parent, const std::string& name,
                          Found& found) const {
  if (stop_) return fail(Errc::Cancelled, "reading " + tree_.shown("") + ": interrupted");
  const std::string path = join_path(parent, name);
  if (is_excluded(path, name, Of::All)) return {};
  if (path.size() > kLongestPath) {
    return fail(Errc::Unsupported, "reading " + tree_.shown(path.substr(0, 200)) +
                                       "…: a path below it is longer than 32 KiB, which no program can use");
  }
  struct statx info {};
  if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kWanted, &info) != 0) {
    if (errno == ENOENT) return {};  // deleted since it was listed: not part of the set
    return fail_errno(errno, "reading " + tree_.shown(path));
  }
  if (S_ISDIR(info.stx_mode) && is_excluded(path, name, Of::Folders)) return {};
  if ((info.stx_attributes & (STATX_ATTR_MOUNT_ROOT | STATX_ATTR_AUTOMOUNT)) != 0) {
    return fail(Errc::Refused, "reading " + tree_.shown(path) + ": another file system is mounted there",
                "exclude it, or stage it as a dataset of its own");
  }
  return add(path, info, folder, name, found);
}

bool EntryScanner::is_excluded(const std::string& path, const std::string& name, Of patterns) const {
  return std::ranges::any_of(exclude_, [&](std::string pattern) {
    const bool is_for_folders = pattern.ends_with('/'), is_tied = pattern.starts_with('/');
    if (is_for_folders != (patterns == Of::Folders)) return false;
    while (pattern.ends_with('/')) pattern.pop_back();
    pattern.erase(0, std::min(pattern.find_first_not_of('/'), pattern.size()));
    return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0 ||
           (!is_tied && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0);
  });
}

// A file with less allocated space than its size has holes or is compressed; its data ranges decide.
Bytes EntryScanner::taken_by(const std::string& path, const struct statx& info) const {
  const Bytes here = std::min<Bytes>(info.stx_blocks * 512, info.stx_size);
  if (taken_ == Taken::Here || here == info.stx_size) return here;
  if (info.stx_size <= kHoleWorthKeeping) return info.stx_size;
  const UniqueFd file = open_beneath(tree_, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  return file ? bytes_of_data(file.get(), info.stx_size) : info.stx_size;
}

Result<> EntryScanner::add(const std::string& path, const struct statx& info, int folder,
                           const std::string& name, Found& found) const {
  if (const char* kind = special_kind(info.stx_mode)) {
    found.skipped.push_back(noted_name(tree_, path) + " (" + kind + ")");
    return {};
  }
  Entry entry;
  entry.path = path;
  fill(entry, info, tree_);
  if (entry.type == EntryType::Folder) {
    found.folders.push_back(path);
  } else if (entry.type == EntryType::Symlink) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(folder, name.c_str(), target, sizeof target);
    if (length < 0) return fail_errno(errno, "reading symlink " + tree_.shown(path));
    entry.target = std::string_view(target, static_cast<std::size_t>(length));
  } else {
    entry.allocated = taken_by(path, info);
    if (info.stx_nlink > 1) found.linked.push_back({found.entries.size(), file_id(info), info.stx_nlink});
  }
  found.entries.push_back(std::move(entry));
  return {};
}

}  // namespace spark::staging
