#include "staging/copy/partial/own_rest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "staging/files/metadata.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr char kHint[] = "look at it, and rename or delete it";

UniqueFd parent_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  return UniqueFd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

tl::unexpected<Error> refuse(const std::filesystem::path& path, const std::string& why) {
  return fail(Errc::Refused, "using folder " + shown_path(path) + ": " + why, kHint);
}

Result<UniqueFd> open_in(const UniqueFd& parent, const std::filesystem::path& path) {
  UniqueFd opened(::openat(parent.get(), path.filename().c_str(), kFolder));
  if (opened) return opened;
  if (errno == ENOTDIR || errno == ELOOP || errno == EACCES)
    return refuse(path, "it is no folder of this user's own");
  return fail_errno(errno, "opening folder " + shown_path(path));
}

// Whether only this user and root may rename there.
bool is_own_folder(const UniqueFd& folder) {
  struct stat info {};
  return ::fstat(folder.get(), &info) == 0 && (info.st_uid == 0 || info.st_uid == ::geteuid()) &&
         ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (info.st_mode & S_ISVTX) != 0);
}

}  // namespace

Result<OwnRest> OwnRest::open(const std::filesystem::path& path, const std::string& mark, Unmarked unmarked) {
  const UniqueFd parent = parent_of(path);
  if (!parent) return fail_errno(errno, "opening folder " + shown_path(path.parent_path()));
  auto opened = open_in(parent, path);
  if (!opened) return opened.take_error();
  OwnRest rest(path, mark, std::move(*opened));
  if (auto proven = rest.prove(parent, unmarked); !proven) return proven.take_error();
  return rest;
}

Result<OwnRest> OwnRest::make(const std::filesystem::path& path, const std::string& mark, Unmarked unmarked) {
  const std::string shown = shown_path(path);
  const auto went_away = [&] {
    return fail(Errc::Unavailable, "opening folder " + shown + ": it went away");
  };
  const UniqueFd parent = parent_of(path);
  if (!parent) return fail_errno(errno, "making folder " + shown);
  const bool is_new = ::mkdirat(parent.get(), path.filename().c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return fail_errno(errno, "making folder " + shown);
  auto opened = open_in(parent, path);
  if (!opened && opened.error().kind == Errc::NotFound) return went_away();
  if (!opened) return opened.take_error();
  OwnRest rest(path, mark, std::move(*opened));
  if (auto proven = rest.prove(parent, unmarked); !proven) return proven.take_error();
  if (is_new) drop_inherited_acl(rest.opened_.get());
  if (::fchmod(rest.opened_.get(), 0700) != 0)
    return fail_errno(errno, "closing folder " + shown + " to others");
  if (rest.make_mark() || rest.is_marked()) return rest;
  if (errno == ENOENT) return went_away();
  // Room has to be made on a full cache.
  if (unmarked == Unmarked::InOwnFolder && is_own_folder(parent)) return rest;
  return fail_errno(errno, "marking folder " + shown);
}

OwnRest OwnRest::claim(const std::filesystem::path& path, const std::string& mark, UniqueFd opened) {
  OwnRest rest(path, mark, std::move(opened));
  const int folder = rest.opened_.get();
  struct stat info {};
  ::fchmod(folder, 0700);
  // Root deletes the copies of other users too.
  const bool is_ours = ::fstat(folder, &info) == 0 &&
                       (info.st_uid == ::geteuid() || ::fchown(folder, ::geteuid(), info.st_gid) == 0);
  if (!is_ours) return rest;
  (void)remove_tree(rest.folder(), mark);  // others may have put anything there
  (void)rest.make_mark();
  return rest;
}

bool OwnRest::make_mark() const {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  return static_cast<bool>(UniqueFd(::openat(opened_.get(), mark_.c_str(), kNew, 0600)));
}

bool OwnRest::is_marked() const {
  const int before = errno;
  struct stat info {};
  const bool is = ::fstatat(opened_.get(), mark_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                  S_ISREG(info.st_mode) && (info.st_mode & 07777U) == 0600 && info.st_size == 0 &&
                  info.st_nlink == 1 && info.st_uid == ::geteuid();
  errno = before;
  return is;
}

Result<> OwnRest::prove(const UniqueFd& parent, Unmarked unmarked) const {
  struct stat info {};
  if (::fstat(opened_.get(), &info) != 0) return fail_errno(errno, "looking at folder " + shown_path(path_));
  if (info.st_uid != ::geteuid()) return refuse(path_, "it belongs to another user");
  if (unmarked == Unmarked::InOwnFolder && is_own_folder(parent)) return {};
  const bool is_closed = (info.st_mode & 0777U) == 0700;
  if (is_closed && is_marked()) return {};
  const auto all = names();
  if (!all) return all.take_error();
  if (is_closed && all->empty()) return {};
  return refuse(path_, "nothing proves that spark-stage has made it, since others may rename there");
}

Result<std::vector<std::string>> OwnRest::names() const {
  auto all = names_in(UniqueFd(::openat(opened_.get(), ".", kFolder)), shown_path(path_));
  if (all && is_marked()) std::erase(*all, mark_);
  return all;
}

Result<> OwnRest::remove() {
  const auto all = names();
  if (!all) return all.take_error();
  Result<> first;
  for (const std::string& name : *all) {
    if (auto removed = remove_tree(folder(), name); !removed && first) first = std::move(removed);
  }
  return first ? remove_if_empty() : first;
}

Result<> OwnRest::remove_if_empty() {
  const auto left = names();
  if (!left) return left.take_error();
  if (!left->empty()) return {};
  if (is_marked()) ::unlinkat(opened_.get(), mark_.c_str(), 0);
  if (::rmdir(path_.c_str()) == 0 || errno == ENOENT) return {};
  const int number = errno;
  (void)make_mark();
  return fail_errno(number, "deleting folder " + shown_path(path_));
}

}  // namespace spark::staging
