#include "staging/walk.hpp"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "staging/times.hpp"

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

class Walk {
 public:
  Walk(const Tree& tree, std::span<const std::string> exclude, const StopFlag& stop)
      : tree_(tree), exclude_(exclude), stop_(stop) {}

  Result<Walked> run() {
    if (auto added = add_root(); !added) return tl::unexpected<Error>(std::move(added.error()));
    while (!folders_.empty()) {
      const std::string path = std::move(folders_.front());
      folders_.pop_front();
      if (auto listed = list(path); !listed) return tl::unexpected<Error>(std::move(listed.error()));
    }
    std::ranges::sort(walked_.entries, {}, &Entry::path);
    join_hard_links();
    std::ranges::sort(walked_.skipped);
    return std::move(walked_);
  }

 private:
  using InodeKey = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

  const Tree& tree_;
  std::span<const std::string> exclude_;
  const StopFlag& stop_;
  Walked walked_;
  std::deque<std::string> folders_;                      // found, not all listed yet
  std::map<std::string, InodeKey, std::less<>> linked_;  // files with more than one name

  bool is_excluded(const std::string& path) const {
    const std::string last = path.substr(path.rfind('/') + 1);
    return std::ranges::any_of(exclude_, [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0 ||
             ::fnmatch(pattern.c_str(), last.c_str(), 0) == 0;
    });
  }

  Result<> add_root() {
    const UniqueFd root = open_beneath(tree_, "", O_PATH | O_NOFOLLOW);
    struct statx info {};
    if (!root || ::statx(root.get(), "", AT_EMPTY_PATH, kWanted, &info) != 0) {
      return fail_errno(errno, "reading " + tree_.shown(""));
    }
    return add("", info, root.get(), "");
  }

  Result<> list(const std::string& path) {
    UniqueFd opened = open_beneath(tree_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const UniqueFd folder(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!folder) return fail_errno(errno, "opening folder " + tree_.shown(path));
    const auto names = names_in(std::move(opened), tree_.shown(path));
    if (!names) return tl::unexpected<Error>(names.error());
    for (const std::string& name : *names) {
      auto added = look_at(join_path(path, name), folder.get(), name);
      if (!added) return added;
    }
    return {};
  }

  Result<> look_at(const std::string& path, int folder, const std::string& name) {
    if (stop_) return fail(Errc::Cancelled, "reading " + tree_.shown("") + ": interrupted");
    if (is_excluded(path)) return {};
    if (path.size() > kLongestPath) {
      return fail(Errc::Unsupported,
                  "reading " + tree_.shown(path.substr(0, 200)) +
                      "…: a path below it is longer than 32 KiB, which no program can use");
    }
    struct statx info {};
    if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kWanted, &info) != 0) {
      if (errno == ENOENT) return {};  // deleted since it was listed: it is not in the set
      return fail_errno(errno, "reading " + tree_.shown(path));
    }
    if ((info.stx_attributes & (STATX_ATTR_MOUNT_ROOT | STATX_ATTR_AUTOMOUNT)) != 0) {
      return fail(Errc::Refused, "reading " + tree_.shown(path) + ": another file system is mounted there",
                  "exclude it, or stage it as a dataset of its own");
    }
    return add(path, info, folder, name);
  }

  Result<> add(const std::string& path, const struct statx& info, int folder, const std::string& name) {
    if (const char* kind = special_kind(info.stx_mode)) {
      walked_.skipped.push_back(printable(path) + " (" + kind + ")");
      return {};
    }
    Entry entry;
    entry.path = path;
    entry.mode = info.stx_mode & 07777;
    entry.uid = info.stx_uid;
    entry.gid = info.stx_gid;
    entry.mtime_ns = nanoseconds(info.stx_mtime);
    entry.ctime_ns = nanoseconds(info.stx_ctime);
    entry.inode = info.stx_ino;
    if (S_ISDIR(info.stx_mode)) {
      entry.type = EntryType::Folder;
      folders_.push_back(path);
    } else if (S_ISLNK(info.stx_mode)) {
      entry.type = EntryType::Symlink;
      if (auto read = read_target(entry, folder, name); !read) return read;
    } else {
      entry.size = info.stx_size;
      entry.allocated = std::min<Bytes>(info.stx_blocks * 512, info.stx_size);
      entry.mode &= tree_.file_mode_mask;
      if (info.stx_nlink > 1) {
        const std::uint64_t device = std::uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor;
        linked_.emplace(path, InodeKey(device, info.stx_ino));
      }
    }
    walked_.entries.push_back(std::move(entry));
    return {};
  }

  Result<> read_target(Entry& entry, int folder, const std::string& name) {
    char target[PATH_MAX + 1];
    const ssize_t length = ::readlinkat(folder, name.c_str(), target, sizeof target);
    if (length < 0) return fail_errno(errno, "reading symlink " + tree_.shown(entry.path));
    entry.target.assign(target, static_cast<std::size_t>(length));
    return {};
  }

  // The first name of a file, in order of path, is the file; the others are links to it.
  void join_hard_links() {
    std::map<InodeKey, std::string> first;
    for (Entry& entry : walked_.entries) {
      const auto found = linked_.find(entry.path);
      if (entry.type != EntryType::File || found == linked_.end()) continue;
      const auto [name, is_first] = first.emplace(found->second, entry.path);
      if (!is_first) entry.link_to = name->second;
    }
  }
};

}  // namespace

Result<Walked> walk(const Tree& tree, std::span<const std::string> exclude, const StopFlag& stop) {
  return Walk(tree, exclude, stop).run();
}

}  // namespace spark::staging
