#include "staging/files/deletion.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "staging/files/entry_scanner.hpp"
#include "staging/files/io/page_cache.hpp"

namespace spark::staging {
namespace {

// Our own descriptor is closed immediately: a program that opens the file meanwhile waits until then. No
// value if the drive or the kernel does not say; errno has the reason.
std::optional<bool> is_opened(int folder, const std::string& name) {
  const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno != ENOENT && errno != EACCES && errno != EPERM) return std::nullopt;
  return fd ? is_open_elsewhere(fd.get()) : std::optional(false);
}

class Probe {
 public:
  explicit Probe(const StopFlag& stop) : stop_(stop) {}

  Result<> add(const Tree& tree) {
    const Parent top = open_parent(tree, "");
    std::vector<std::string> folders;
    if (!top.folder) return fail_errno(errno, "looking at " + tree.shown(""));
    if (auto seen = see(tree, top.folder.get(), top.name, "", folders); !seen) return seen;
    while (!folders.empty() && found_.obstacle.empty()) {
      const std::string path = std::move(folders.back());
      folders.pop_back();
      if (auto listed = list(tree, path, folders); !listed) return listed;
    }
    return {};
  }
  const Deletion& found() const { return found_; }

 private:
  const StopFlag& stop_;
  Deletion found_;
  std::map<FileId, std::uint32_t> names_left_;  // of files with several names

  Result<> list(const Tree& tree, const std::string& path, std::vector<std::string>& folders) {
    UniqueFd opened = open_beneath(tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const UniqueFd kept(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!kept) return fail_errno(errno, "opening folder " + tree.shown(path));
    return for_each_name(std::move(opened), tree.shown(path), [&](const std::string& name) -> Result<> {
      if (!found_.obstacle.empty()) return {};
      if (stop_) return fail(Errc::Cancelled, "looking at " + tree.shown("") + ": interrupted");
      return see(tree, kept.get(), name, join_path(path, name), folders);
    });
  }

  Result<> see(const Tree& tree, int folder, const std::string& name, const std::string& path,
               std::vector<std::string>& folders) {
    struct statx info {};
    if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info) != 0) {
      if (errno == ENOENT) return {};
      return fail_errno(errno, "looking at " + tree.shown(path));
    }
    const std::string shown =
        S_ISDIR(info.stx_mode) ? "its folder " + printable(path) : "its file " + printable(path);
    if ((info.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0) {
      found_.obstacle = shown + " may not be deleted (chattr)";
    } else if (S_ISREG(info.stx_mode)) {
      const auto is_open = is_opened(folder, name);
      if (!is_open) return fail_errno(errno, "looking at " + tree.shown(path));
      found_.passes = *is_open;
      if (*is_open) found_.obstacle = shown + " is open";
    }
    if (S_ISDIR(info.stx_mode)) folders.push_back(path);
    if (S_ISDIR(info.stx_mode) || info.stx_nlink < 2 || is_last_name(info))
      found_.freed += info.stx_blocks * 512;
    return {};
  }

  bool is_last_name(const struct statx& info) {
    return --names_left_.emplace(file_id(info), info.stx_nlink).first->second == 0;
  }
};

}  // namespace

Result<Deletion> look_before_deleting(const std::vector<Tree>& trees, const StopFlag& stop) {
  Probe probe(stop);
  for (const Tree& tree : trees) {
    if (auto added = probe.add(tree); !added) return added.take_error();
  }
  return probe.found();
}

Result<Deletion> look_before_deleting(const std::vector<std::filesystem::path>& roots, const StopFlag& stop) {
  std::vector<Tree> trees;
  for (const std::filesystem::path& root : roots) {
    auto tree = open_tree(root);
    if (tree) trees.push_back(std::move(*tree));
    if (!tree && tree.error().kind != Errc::NotFound) return tree.take_error();
  }
  return look_before_deleting(trees, stop);
}

}  // namespace spark::staging
