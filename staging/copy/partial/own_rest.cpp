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
constexpr char kHint[] = "look at it: rename it, or delete it if nothing in it is needed";

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

tl::unexpected<Error> went_away(const std::filesystem::path& path) {
  return fail(Errc::Unavailable, "opening folder " + shown_path(path) + ": it went away");
}

tl::unexpected<Error> keeps_no_modes(const std::filesystem::path& path) {
  return fail(
      Errc::Refused,
      "using folder " + shown_path(path) +
          ": its file system keeps no modes, so nothing would prove later that spark-stage has made it",
      "choose a folder that only you may write to");
}

// Whether only this user and root may rename there. The sticky bit keeps others from moving this user's
// folders away, but not from moving one there to which they may write.
bool is_own_folder(const UniqueFd& folder) {
  struct stat info {};
  return ::fstat(folder.get(), &info) == 0 && (info.st_uid == 0 || info.st_uid == ::geteuid()) &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_closed(const UniqueFd& folder) {
  struct stat info {};
  return ::fstat(folder.get(), &info) == 0 && (info.st_mode & 0777U) == 0700;
}

bool is_open_to_others(const UniqueFd& parent, const std::string& name) {
  struct stat info {};
  return ::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0777U) != 0700;
}

bool needs_mark(const UniqueFd& parent, OwnRest::Unmarked unmarked) {
  return unmarked == OwnRest::Unmarked::Refused || !is_own_folder(parent);
}

}  // namespace

Result<OwnRest> OwnRest::open(const std::filesystem::path& path, const std::string& mark, Unmarked unmarked) {
  const UniqueFd parent = parent_of(path);
  if (!parent) return fail_errno(errno, "opening folder " + shown_path(path.parent_path()));
  auto opened = open_in(parent, path);
  if (!opened) return opened.take_error();
  OwnRest rest(path, mark, std::move(*opened));
  if (auto proven = rest.prove(needs_mark(parent, unmarked)); !proven) return proven.take_error();
  return rest;
}

Result<OwnRest> OwnRest::make(const std::filesystem::path& path, const std::string& mark, Unmarked unmarked) {
  const UniqueFd parent = parent_of(path);
  if (!parent) return fail_errno(errno, "making folder " + shown_path(path));
  const std::string name = path.filename();
  const auto make_folder = [&] { return ::mkdirat(parent.get(), name.c_str(), 0700) == 0 ? 0 : errno; };
  int number = make_folder();
  // Others may be putting something into one that is open to them. A new one replaces it if it is empty.
  if (number == EEXIST && is_open_to_others(parent, name) &&
      ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0)
    number = make_folder();
  if (number != 0 && number != EEXIST) return fail_errno(number, "making folder " + shown_path(path));
  auto opened = open_in(parent, path);
  if (!opened && opened.error().kind == Errc::NotFound) return went_away(path);
  if (!opened) return opened.take_error();
  OwnRest rest(path, mark, std::move(*opened));
  const bool is_new = number == 0, is_mark_needed = needs_mark(parent, unmarked);
  Result<> made = is_new ? rest.close_new(is_mark_needed) : Result<>();
  if (made) made = rest.prove(is_mark_needed);
  if (made) made = rest.close_and_mark(is_mark_needed);
  if (made) return rest;
  if (is_new) ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);  // unless something is in it
  return made.take_error();
}

// A server may have a new folder inherit rights of others, who may put something into it before it is closed.
Result<> OwnRest::close_new(bool is_mark_needed) const {
  const int folder = opened_.get();
  struct stat info {};
  if (::fstat(folder, &info) != 0) return fail_errno(errno, "looking at folder " + shown_path(path_));
  if (info.st_uid != ::geteuid()) return {};  // see prove
  drop_inherited_acl(folder);
  if ((info.st_mode & 0777U) == 0700) return {};
  (void)::fchmod(folder, 0700);
  if (!is_closed(opened_)) return is_mark_needed ? keeps_no_modes(path_) : Result<>();
  const auto all = names();
  if (all && all->empty() && !is_marked()) return {};
  (void)::fchmod(folder, info.st_mode & 07777U);
  return went_away(path_);
}

Result<> OwnRest::close_and_mark(bool is_mark_needed) const {
  if (::fchmod(opened_.get(), 0700) != 0)
    return fail_errno(errno, "closing folder " + shown_path(path_) + " to others");
  const int number = make_mark() ? 0 : errno;
  if (is_marked()) return {};
  if (number == ENOENT) return went_away(path_);
  if (!is_mark_needed) return {};  // room has to be made on a full cache
  if (number == EOPNOTSUPP) return keeps_no_modes(path_);
  if (number == 0 || number == EEXIST) return went_away(path_);  // another process has deleted the mark
  return fail_errno(number, "marking folder " + shown_path(path_));
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

// A server may have it inherit rights of others.
bool OwnRest::make_mark() const {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd mark(::openat(opened_.get(), mark_.c_str(), kNew, 0600));
  struct stat info {};
  if (!mark || ::fchmod(mark.get(), 0600) != 0 || ::fstat(mark.get(), &info) != 0) return false;
  if ((info.st_mode & 07777U) == 0600) return true;
  ::unlinkat(opened_.get(), mark_.c_str(), 0);
  errno = EOPNOTSUPP;
  return false;
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

Result<> OwnRest::prove(bool is_mark_needed) const {
  struct stat info {};
  if (::fstat(opened_.get(), &info) != 0) return fail_errno(errno, "looking at folder " + shown_path(path_));
  if (info.st_uid != ::geteuid()) return refuse(path_, "it belongs to another user");
  if (!is_mark_needed) return {};
  if (!is_closed(opened_)) return refuse(path_, "it is open to other users, and none of spark-stage's is");
  if (is_marked()) return {};
  const auto all = names();
  if (!all) return all.take_error();
  if (all->empty() || is_marked()) return {};  // another process may have marked it meanwhile
  return refuse(path_, "it has no mark of spark-stage");
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
    if (!is_marked()) (void)make_mark();  // there is room for it now
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

bool stays_unproven(const std::filesystem::path& path, const Error& error) {
  struct stat info {};
  return error.kind == Errc::Refused && ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

}  // namespace spark::staging
