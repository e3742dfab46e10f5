#include "staging/files/tree.hpp"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <vector>

#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr std::uint64_t kStayOnMount = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

UniqueFd openat2(int folder, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = resolve;
  int fd = -1;
  do {
    fd = static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  return UniqueFd(fd);
}

// One component at a time: for paths longer than PATH_MAX, and if there is no openat2 (qemu-user, old seccomp
// filters).
UniqueFd open_by_steps(int folder, const std::string& path, int flags) {
  UniqueFd at;
  const std::vector<std::string> parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == ".." || parts[i].empty()) {
      errno = EXDEV;
      return {};
    }
    const bool is_last = i + 1 == parts.size();
    const int step_flags = is_last ? flags : O_PATH | O_DIRECTORY;
    const int from = at ? at.get() : folder;
    UniqueFd next(::openat(from, parts[i].c_str(), step_flags | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return {};
    at = std::move(next);
  }
  return at;
}

UniqueFd open_below(int folder, const std::string& path, int flags) {
  if (path.size() < PATH_MAX) {
    UniqueFd fd = openat2(folder, path, flags, kStayOnMount | RESOLVE_NO_SYMLINKS);
    if (fd || errno != ENOSYS) return fd;
  }
  return open_by_steps(folder, path, flags);
}

// The folder and name to open an entry with.
struct Place {
  int folder;
  std::string path;
};

Place place_of(const Tree& tree, std::string_view path) {
  const auto& targets = tree.grafts.targets;
  for (std::string_view at = path; !targets.empty();) {
    if (const auto graft = targets.find(at); graft != targets.end())
      return {tree.grafts.limit.get(), graft->second + std::string(path.substr(at.size()))};
    const std::size_t slash = at.rfind('/');
    if (slash == std::string_view::npos) break;
    at = at.substr(0, slash);
  }
  return {tree.folder.get(), tree.below(path)};
}

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool is_folder(int parent, const std::string& name) {
  struct stat info {};
  return ::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

Result<Tree> tree_at(UniqueFd opened, const std::filesystem::path& folder, const std::string& name) {
  Tree tree;
  tree.folder = std::move(opened);
  if (!tree.folder) return fail_errno(errno, "opening folder " + shown_path(folder));
  tree.file = name;
  tree.folder_path = folder.native();
  const std::filesystem::path root = name.empty() ? folder : folder / name;
  tree.has_ctime = !root.parent_path().native().ends_with(kHeldSuffix);
  struct statvfs system {};
  if (::fstatvfs(tree.folder.get(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0) {
    tree.file_mode_mask = 01777;
  }
  return tree;
}

void note(Result<>& first, Result<> other) {
  if (first) first = std::move(other);
}

// Deletes everything except folders; returns the names of the folders. Failures are recorded in `all`.
std::vector<std::string> remove_files_in(UniqueFd folder, const std::string& shown, Result<>& all) {
  ::fchmod(folder.get(), 0700);  // a copied folder may be inaccessible even to its owner
  UniqueFd kept(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0));
  auto names = names_in(std::move(folder), shown);
  if (!names) note(all, fail(names.error()));
  if (!names) return {};
  std::erase_if(*names, [&](const std::string& name) {
    if (::unlinkat(kept.get(), name.c_str(), 0) == 0 || errno == ENOENT) return true;
    const int number = errno;
    if (number == EISDIR || is_folder(kept.get(), name)) return false;
    note(all, fail_errno(number, "deleting " + shown + "/" + printable(name)));
    return true;
  });
  return std::move(*names);
}

}  // namespace

std::string Tree::below(std::string_view path) const {
  if (file.empty()) return path.empty() ? "." : std::string(path);
  return path.empty() ? file : file + "/" + std::string(path);
}

std::string Tree::root() const {
  if (file.empty()) return folder_path;
  return folder_path + (folder_path.ends_with('/') ? "" : "/") + file;
}

std::string Tree::shown(std::string_view path) const {
  std::string whole = root();
  if (!path.empty()) (whole += whole.ends_with('/') ? "" : "/") += path;
  return printable(whole);
}

tl::unexpected<Error> Tree::failed(int number, const std::string& doing, std::string_view path,
                                   std::string hint) const {
  auto error = fail_errno(number, doing + " " + shown(path), std::move(hint));
  error.value().is_of_source = is_source;
  return error;
}

std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

bool is_inside(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

Result<Tree> open_tree(const std::filesystem::path& path, RootLink link,
                       const std::optional<Within>& within) {
  const auto named =
      open_named(path, link == RootLink::Followed ? Links::Followed : Links::LastIsItself, within);
  if (!named) return named.take_error();
  const mode_t mode = named->info.st_mode;
  if (S_ISLNK(mode)) {
    return fail(Errc::Refused, "opening " + shown_path(path) + ": it is a symbolic link",
                "name the file or folder that it leads to");
  }
  if (!S_ISDIR(mode) && !S_ISREG(mode)) {
    return fail(Errc::Invalid, "opening " + shown_path(path) + ": neither a folder nor a regular file");
  }
  const std::filesystem::path real = named->path;
  if (S_ISDIR(mode)) return tree_at(named->open_folder(), real, "");
  return tree_at(UniqueFd(::openat(named->folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                 real.parent_path(), real.filename());
}

Result<Tree> tree_in(const std::filesystem::path& folder, const std::string& name) {
  return tree_at(UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), present_path(folder),
                 name);
}

UniqueFd open_beneath(const Tree& tree, std::string_view path, int flags) {
  const Place place = place_of(tree, path);
  return open_below(place.folder, place.path, flags);
}

Parent open_parent(const Tree& tree, std::string_view path) {
  const auto [folder, whole] = place_of(tree, path);
  const std::size_t slash = whole.rfind('/');
  const std::string above = slash == std::string::npos ? "." : whole.substr(0, slash);
  return {open_below(folder, above, O_RDONLY | O_DIRECTORY),
          slash == std::string::npos ? whole : whole.substr(slash + 1)};
}

Followed follow_beneath(int folder, const std::string& folder_path, const std::string& path) {
  UniqueFd fd = openat2(folder, path, O_PATH, kStayOnMount);
  if (!fd) return {};
  std::error_code error;
  const std::filesystem::path real = std::filesystem::read_symlink(held_path(fd), error);
  if (error || !is_inside(real.native(), folder_path)) {
    errno = error ? error.value() : EXDEV;
    return {};
  }
  const std::size_t above = folder_path.ends_with('/') ? folder_path.size() : folder_path.size() + 1;
  return {std::move(fd), real.native().size() > above ? real.native().substr(above) : "."};
}

std::string mount_root_of(const std::string& path) {
  std::filesystem::path at = path;
  struct statx info {};
  while (at.has_relative_path() &&
         ::statx(AT_FDCWD, at.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &info) == 0 &&
         (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
    at = at.parent_path();
  return at.native();
}

Result<> for_each_name(UniqueFd folder, const std::string& shown,
                       const std::function<Result<>(std::string)>& take) {
  const std::unique_ptr<DIR, CloseDir> list(::fdopendir(folder.get()));
  if (!list) return fail_errno(errno, "listing " + shown);
  folder.release();
  errno = 0;
  while (const dirent* found = ::readdir(list.get())) {
    std::string name = found->d_name;
    if (name != "." && name != "..") {
      if (auto taken = take(std::move(name)); !taken) return taken;
    }
    errno = 0;
  }
  if (errno != 0) return fail_errno(errno, "listing " + shown);
  return {};
}

Result<std::vector<std::string>> names_in(UniqueFd folder, const std::string& shown) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) -> Result<> {
    names.push_back(std::move(name));
    return {};
  };
  if (auto listed = for_each_name(std::move(folder), shown, add); !listed) return listed.take_error();
  return names;
}

Result<> remove_tree(const Tree& tree, std::string_view path) {
  const Parent top = open_parent(tree, path);
  if (!top.folder) return fail_errno(errno, "deleting " + tree.shown(path));
  if (::unlinkat(top.folder.get(), top.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  const int number = errno;
  if (number != EISDIR && !is_folder(top.folder.get(), top.name))
    return fail_errno(number, "deleting " + tree.shown(path));

  Result<> all;  // the first failure; the rest is deleted nevertheless
  std::vector<std::string> folders = {std::string(path)};  // parents before their content
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::string folder = folders[i];
    UniqueFd opened = open_beneath(tree, folder, O_RDONLY | O_DIRECTORY);
    if (!opened && errno == ENOENT) continue;  // another process deletes it as well
    if (!opened) note(all, fail_errno(errno, "deleting " + tree.shown(folder)));
    if (!opened) continue;
    for (const std::string& name : remove_files_in(std::move(opened), tree.shown(folder), all))
      folders.push_back(join_path(folder, name));
  }
  for (std::size_t i = folders.size(); i-- > 0;) {
    const std::string& folder = folders[i];
    const Parent parent = open_parent(tree, folder);
    const bool gone =
        parent.folder && ::unlinkat(parent.folder.get(), parent.name.c_str(), AT_REMOVEDIR) == 0;
    if (!gone && errno != ENOENT) note(all, fail_errno(errno, "deleting " + tree.shown(folder)));
  }
  return all;
}

Result<> remove_tree(const std::filesystem::path& folder, const std::string& name) {
  auto tree = tree_in(folder, name);
  if (!tree) return tree.take_error();
  return remove_tree(*tree, "");
}

Result<RootIdentity> identity_of(const std::filesystem::path& path) {
  return identity_of(UniqueFd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)), path);
}

Result<RootIdentity> identity_of(const UniqueFd& opened, const std::filesystem::path& path) {
  struct statx info {};
  if (!opened || ::statx(opened.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) != 0) {
    return fail_errno(errno, "looking at " + shown_path(path));
  }
  RootIdentity identity;
  identity.inode = info.stx_ino;
  if ((info.stx_mask & STATX_BTIME) != 0) {
    identity.birth_ns = info.stx_btime.tv_sec * 1'000'000'000 + info.stx_btime.tv_nsec;
  }
  return identity;
}

}  // namespace spark::staging
