#include "staging/copy/partial/removal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

// End of a rest's name, and the name of its mark if the rest itself is to be deleted.
constexpr char kRemoved[] = ".spark-removed";
// Name of the mark if what is to be deleted is in the rest, under the name of its identity.
constexpr char kInside[] = ".spark-inside";

std::string new_name() {
  return "." + random_digits() + kRemoved;
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

std::string name_of(const RootIdentity& identity) {
  return std::to_string(identity.inode) + "-" + std::to_string(identity.birth_ns);
}

// No object has the identity of a name that is none.
RootIdentity identity_named(std::string_view name) {
  RootIdentity identity;
  const char* const end = name.data() + name.size();
  const auto inode = std::from_chars(name.data(), end, identity.inode);
  if (inode.ec != std::errc() || inode.ptr == end || *inode.ptr != '-') return {};
  const auto birth = std::from_chars(inode.ptr + 1, end, identity.birth_ns);
  return birth.ec == std::errc() && birth.ptr == end ? identity : RootIdentity();
}

struct Checked {
  std::filesystem::path path;  // where it was
  RootIdentity identity;
};

Result<UniqueFd> open_checked(const std::filesystem::path& path, const Checked& checked) {
  UniqueFd opened(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto identity = identity_of(opened, path);
  if (identity && is_same_object(checked.identity, *identity)) return opened;
  if (!identity && identity.error().kind == Errc::NotFound) return identity.take_error();
  return fail(Errc::Refused,
              "deleting " + shown_path(checked.path) + ": another file or folder has got its name");
}

// Back if it is another one, which the job or another host has published meanwhile.
Result<UniqueFd> move_checked(const Checked& checked, const std::filesystem::path& to, const StepHook& hook) {
  if (auto renamed = rename_to_new(checked.path, to); !renamed) return renamed.take_error();
  const auto put_back = [&](Error error) {
    (void)rename_to_new(to, checked.path);
    return fail(std::move(error));
  };
  auto moved = open_checked(to, checked);
  if (!moved) return put_back(moved.error());
  struct stat info {};
  if (::fstat(moved->get(), &info) != 0)
    return put_back(fail_errno(errno, "looking at " + shown_path(checked.path)).value());
  const std::filesystem::path held = held_path(*moved);
  // Closed to others. Its owner may have closed it to itself.
  if (S_ISDIR(info.st_mode)) ::chmod(held.c_str(), 0700);
  if (auto go_on = after(hook, "moved"); !go_on) {
    if (S_ISDIR(info.st_mode)) ::chmod(held.c_str(), info.st_mode & 07777U);
    return put_back(go_on.error());
  }
  return moved;
}

// Without room for a rest. What an interruption before the mark leaves stays.
Result<Removal> move_in_folder(const Checked& checked, const StepHook& hook) {
  const std::filesystem::path folder = checked.path.parent_path(), to = folder / new_name();
  const auto moved = move_checked(checked, to, hook);
  if (!moved) return moved.take_error();
  const auto put_back = [&](int number, const std::string& doing) {
    (void)rename_to_new(to, checked.path);
    return fail_errno(number, doing + shown_path(checked.path));
  };
  struct stat info {};
  if (::fstat(moved->get(), &info) != 0) return put_back(errno, "looking at ");
  if (!S_ISDIR(info.st_mode)) {
    if (::unlink(to.c_str()) != 0) return put_back(errno, "deleting ");
    if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
    return Removal();
  }
  UniqueFd opened(::openat(moved->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return put_back(errno, "opening folder ");
  Removal away = OwnRest::claim(to, kRemoved, std::move(opened));
  if (auto flushed = flush_folder(away->folder()); !flushed) return flushed.take_error();
  if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
  return away;
}

// What is in it. Another one may have got the name right before it was moved there, and the process was
// killed then, or is about to put it back.
Result<std::vector<std::string>> checked_inside(const OwnRest& rest) {
  auto names = rest.names();
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (name.starts_with(".nfs")) continue;  // a deleted file that a program has open
    const auto identity = identity_of(rest.folder() / name);
    if (!identity && identity.error().kind == Errc::NotFound) continue;  // another process deletes it
    if (!identity) return identity.take_error();
    if (is_same_object(identity_named(name), *identity)) continue;
    return fail(Errc::Refused,
                "deleting what is in " + shown_path(rest.path()) + ": " + printable(name) +
                    " in it is not what was to be deleted",
                "look at it: it may be a file or folder that you miss");
  }
  return names;
}

Result<> finish_removal(const std::filesystem::path& path) {
  auto left = OwnRest::open(path, kRemoved);
  if (left) return left->remove();
  auto inside = OwnRest::open(path, kInside);
  if (!inside) return inside.take_error();
  const auto checked = checked_inside(*inside);
  return checked ? inside->remove(*checked) : Result<>(fail(checked.error()));
}

}  // namespace

std::string random_digits() {
  std::random_device random;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return digits;
}

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  ask_server_for(folder);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown_path(folder));
  return names_in(std::move(fd), shown_path(folder));
}

Result<Removal> rename_for_removal(const std::filesystem::path& folder, const std::string& name,
                                   const RootIdentity& identity, const StepHook& hook) {
  const Checked checked{folder / name, identity};
  const auto there = open_checked(checked.path, checked);
  if (!there) return there.take_error();
  if (auto go_on = after(hook, "checked"); !go_on) return go_on.take_error();
  auto rest = OwnRest::make(folder / new_name(), kInside);
  if (!rest) return move_in_folder(checked, hook);
  struct stat info {};
  // Moving a folder takes its owner's permission to write to it.
  if (::fstat(there->get(), &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & S_IWUSR) == 0)
    ::chmod(held_path(*there).c_str(), (info.st_mode & 07777U) | S_IWUSR);
  const auto moved = move_checked(checked, rest->folder() / name_of(identity), hook);
  if (!moved) {
    (void)rest->remove_if_empty();
    const bool is_another = moved.error().kind == Errc::Refused;
    return is_another ? Result<Removal>(moved.take_error()) : move_in_folder(checked, hook);
  }
  if (auto flushed = flush_folder(rest->folder()); !flushed) return flushed.take_error();
  if (auto flushed = flush_folder(folder); !flushed) return flushed.take_error();
  return Removal(std::move(*rest));
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

Result<> finish_removals(const std::filesystem::path& folder, std::vector<std::string>* unproven) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kRemoved)) continue;
    auto removed = finish_removal(folder / name);
    if (removed || removed.error().kind == Errc::NotFound) continue;
    const bool is_refused = removed.error().kind == Errc::Refused;
    if (is_refused && !stays_unproven(folder / name, removed.error())) continue;  // another user's
    if (is_refused && unproven != nullptr) {
      unproven->push_back(removed.error().message());
    } else if (all) {
      all = std::move(removed);
    }
  }
  return all;
}

}  // namespace spark::staging
