#include "staging/copy/partial/removal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <utility>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

constexpr char kRemoved[] = ".spark-removed";  // end of the name, and the name of the mark

// Another one each time: others may have taken a known name.
std::string new_name() {
  std::random_device random;
  char name[32];
  std::snprintf(name, sizeof name, ".%08x%08x%s", random(), random(), kRemoved);
  return name;
}

// An NFS client may show a folder as it was a minute ago, or that it is not there, until the server is asked
// for it. False: it is not there.
bool ask_server_for(const std::filesystem::path& folder) {
  struct statx info {};
  const auto is_there = [&] {
    return ::statx(AT_FDCWD, folder.c_str(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &info) == 0;
  };
  if (is_there()) return true;
  const bool may_be_new = errno == ENOENT && folder.has_relative_path();
  return may_be_new && ask_server_for(folder.parent_path()) && is_there();
}

// An error only if it is this user's. Others may have given it this name.
Result<> unproven(const std::filesystem::path& rest) {
  struct stat info {};
  if (::lstat(rest.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  return fail(Errc::Refused,
              shown_path(rest) + " may be the rest of an interrupted deletion, but nothing proves it",
              "look at it, and delete it");
}

}  // namespace

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  ask_server_for(folder);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown_path(folder));
  return names_in(std::move(fd), shown_path(folder));
}

Result<Removal> rename_for_removal(const std::filesystem::path& folder, const std::string& name,
                                   const RootIdentity& checked) {
  const std::filesystem::path from = folder / name, to = folder / new_name();
  const auto open_checked = [&](const std::filesystem::path& path) -> Result<UniqueFd> {
    UniqueFd opened(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const auto identity = identity_of(opened, path);
    if (identity && is_same_object(checked, *identity)) return opened;
    if (!identity && identity.error().kind == Errc::NotFound) return identity.take_error();
    return fail(Errc::Refused, "deleting " + shown_path(from) + ": another file or folder has got its name");
  };
  const auto there = open_checked(from);
  if (!there) return there.take_error();
  struct stat info {};
  if (::fstat(there->get(), &info) != 0) return fail_errno(errno, "looking at " + shown_path(from));
  if (!S_ISDIR(info.st_mode)) {  // who may put another file in its place could delete that too
    if (::unlink(from.c_str()) != 0) return fail_errno(errno, "deleting " + shown_path(from));
    if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
    return Removal();
  }
  if (auto renamed = rename_to_new(from, to); !renamed) return renamed.take_error();
  const auto moved = open_checked(to);
  if (!moved) {
    (void)rename_to_new(to, from);
    return moved.take_error();
  }
  ::chmod(held_path(*moved).c_str(), 0700);  // its owner may have closed it to itself
  UniqueFd opened(::openat(moved->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) {
    const int number = errno;
    (void)rename_to_new(to, from);
    return fail_errno(number, "opening folder " + shown_path(from));
  }
  Removal away = OwnRest::claim(to, kRemoved, std::move(opened));
  if (auto flushed = flush_folder(away->folder()); !flushed) return flushed.take_error();
  if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
  return away;
}

Result<> remove(Removal removal) {
  return removal ? removal->remove() : Result<>();
}

Result<> check_deletable(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entries;
  const auto is_ours = [](const fs::path& folder) {
    struct stat info {};
    return ::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid == ::geteuid() ||
           ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  };
  std::optional<fs::path> others = is_ours(path) ? std::nullopt : std::optional(path);
  if (!others && fs::is_directory(fs::symlink_status(path, error)))
    entries = fs::recursive_directory_iterator(path, error);
  for (; !others && !error && entries != end(entries); entries.increment(error))
    if (!is_ours(entries->path())) others = entries->path();
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading " + shown_path(path));
  if (!others) return {};
  return fail(Errc::Denied, shown_path(*others) + " is another user's, and this one may not empty it",
              "run the job as the owner of its folder, or change the owner with `sudo chown -R`");
}

Result<> finish_removals(const std::filesystem::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kRemoved)) continue;
    auto left = OwnRest::open(folder / name, kRemoved);
    if (!left && all) all = unproven(folder / name);
    if (!left) continue;
    if (auto removed = left->remove(); !removed && all) all = std::move(removed);
  }
  return all;
}

}  // namespace spark::staging
