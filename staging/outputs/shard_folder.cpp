#include "staging/outputs/shard_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"
#include "staging/outputs/begun_join.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

// None if the name is too long to contain that of its checkpoint.
std::optional<ShardedCheckpoint> checkpoint_of(const std::filesystem::path& folder, const std::string& name) {
  ShardedCheckpoint checkpoint{folder, name.substr(1, name.size() - sizeof kShardsSuffix)};
  if (checkpoint.shards().filename() != name) return std::nullopt;
  return checkpoint;
}

enum class Age { Older, NotOlder, Unknown };

// Unknown if no host has a shard of both.
Age age_of(const std::vector<PublishedCopy>& shards, const ShardTimes& published) {
  Age age = Age::Unknown;
  for (const PublishedCopy& shard : shards) {
    const auto same_host = published.find(shard.name);
    if (same_host == published.end()) continue;
    if (shard.mtime_ns >= same_host->second) return Age::NotOlder;
    age = Age::Older;
  }
  return age;
}

// See remove_older_shards.
Result<> remove_if_older(const std::filesystem::path& folder, const std::string& name,
                         const std::vector<PublishedCopy>& copies, const PublishedShards& published,
                         const OnRemoval& on_removal) {
  const auto begun_at = server_time_of(folder / name);  // the lock's file may be new in it
  auto lock = lock_shards(folder / name, Holders::One);
  if (!lock) return lock.take_error();
  if (!*lock) return {};
  const auto shards = published_copies(lock->path());
  if (!shards) return shards.take_error();
  const Age age = age_of(*shards, published.times);
  if (age == Age::NotOlder) return {};
  if (age == Age::Unknown) {
    const auto latest = std::ranges::max_element(copies, {}, &PublishedCopy::mtime_ns);
    const auto published_at = server_time_of(Destination{folder, latest->name}.manifest());
    const bool can_tell = shards->empty() || published.are_all;
    if (!can_tell || !begun_at || !published_at || *begun_at >= *published_at) return {};
  }
  const auto checkpoint = checkpoint_of(folder, name);
  if (on_removal) on_removal(checkpoint ? checkpoint->name : name);
  if (checkpoint) {
    if (auto removed = remove_begun_join(*checkpoint); !removed) return removed;
  }
  return remove_locked_shards(folder / name, std::move(*lock));
}

// Of a partial copy, or of what a process that can't die has of one.
bool is_proven(const std::filesystem::path& folder, const std::string& name) {
  constexpr std::string_view kStuck = ".spark-partial.stuck";
  if (name.ends_with(kPartialSuffix)) return PartialArea::look_at(folder / name).has_value();
  const bool is_stuck = name.starts_with("..") && name.ends_with(kStuck);
  return is_stuck &&
         PartialArea::look_at_left_behind(folder / name.substr(1, name.size() - sizeof ".stuck")).has_value();
}

// Others may have given this user's files and folders any name. A file they could have deleted as well, but
// not what is in a folder.
Result<bool> is_of_shards(const std::filesystem::path& folder, const std::string& name) {
  struct stat info {};
  if (::lstat((folder / name).c_str(), &info) != 0) {
    if (errno == ENOENT) return true;
    return fail_errno(errno, "looking at " + shown_path(folder / name));
  }
  if (!name.starts_with('.')) {
    const auto manifest = manifest_of_published({folder, name});
    if (!manifest) return manifest.take_error();
    return manifest->has_value();
  }
  if (S_ISDIR(info.st_mode)) return is_proven(folder, name);
  return S_ISREG(info.st_mode) &&
         (name == ".lock" || name.starts_with(".nfs") || name.ends_with(kPlannedSuffix) ||
          name.ends_with(".spark-manifest") || name.find(kAttemptSuffix) != std::string::npos);
}

// In a folder where others may rename, one of them may have given the name to another of this user's folders.
Result<> check_only_shards(const UniqueFd& folder, const std::filesystem::path& shards) {
  const auto names = names_of(held_path(folder));
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    const auto is_one = is_of_shards(held_path(folder), name);
    if (!is_one) return is_one.take_error();
    if (*is_one) continue;
    return fail(
        Errc::Refused,
        "deleting the shards in " + shown_path(shards) + ": it has " + printable(name) + ", which is none",
        "look at it: rename the folder, or delete it if nothing in it is needed");
  }
  return {};
}

// None if it is not there. Who made it could put any shard into it.
Result<UniqueFd> open_shards(const std::filesystem::path& shards) {
  UniqueFd folder(::open(shards.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder && (errno == ENOENT || errno == ESTALE)) return UniqueFd();
  if (!folder || ::fstat(folder.get(), &info) != 0)
    return fail_errno(errno, "opening folder " + shown_path(shards));
  if (is_trusted(shards.parent_path(), info.st_uid)) return folder;
  return fail(Errc::Refused, "using " + shown_path(shards) + " for the shards: it belongs to another user",
              "look at it, and delete it if nothing needs it");
}

}  // namespace

std::filesystem::path ShardedCheckpoint::shards() const {
  return folder / companion_name(name, kShardsSuffix);
}

Result<> make_shards(const ShardedCheckpoint& checkpoint, const std::string& host) {
  if (host.empty() || host.starts_with('.') || host.find('/') != std::string::npos)
    return fail(Errc::Invalid, "'" + printable(host) + "' is not a host name that a file can have");
  const std::filesystem::path shards = checkpoint.shards();
  std::error_code error;
  if (std::filesystem::create_directory(shards, error)) {
    if (auto flushed = flush_folder(checkpoint.folder); !flushed) return flushed;
  }
  if (error) return fail_errno(error.value(), "making folder " + shown_path(shards));
  return {};
}

std::filesystem::path sign_of(const std::filesystem::path& shards, const std::string& host) {
  return shards / companion_name(host, kPlannedSuffix);
}

Result<> announce_shard(const ShardedCheckpoint& checkpoint, const std::string& host, WallTime now) {
  const auto shards = open_shards(checkpoint.shards());
  if (!shards) return shards.take_error();
  if (!*shards) return {};
  const std::filesystem::path sign = sign_of(held_path(*shards), host);
  // Anything else that got the name stays as it is, and a FIFO would block for want of a reader.
  constexpr int kSign = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(::open(sign.c_str(), kSign, 0644));
  struct stat info {};
  if (!file && (errno == ENOENT || errno == ENXIO)) return {};
  if (file && ::fstat(file.get(), &info) == 0 && !S_ISREG(info.st_mode)) return {};
  const std::string text = std::to_string(now.time_since_epoch() / std::chrono::milliseconds(1));
  if (file && ::ftruncate(file.get(), 0) == 0 &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    return {};
  return fail_errno(errno, "writing " + shown_path(sign));
}

std::string attempt_of(const std::filesystem::path& shards, const std::string& host) {
  constexpr std::size_t kLongest = 4096;
  return read_regular_file(shards / companion_name(host, kAttemptSuffix), kLongest).value_or("");
}

Result<> forget_other_attempt(const std::filesystem::path& shards, const std::string& host,
                              const std::string& text) {
  const std::filesystem::path file = shards / companion_name(host, kAttemptSuffix);
  const auto noted = read_regular_file(file);
  if (noted && *noted == text) return {};
  if (::unlink(file.c_str()) == 0) return flush_folder(shards);
  return errno == ENOENT ? Result<>() : fail_errno(errno, "removing " + shown_path(file));
}

Result<> note_attempt(const std::filesystem::path& shards, const std::string& host, const std::string& text) {
  if (text.empty() || attempt_of(shards, host) == text) return {};
  return write_file_atomically(shards / companion_name(host, kAttemptSuffix), text);
}

Result<LockedShards> lock_shards(const std::filesystem::path& shards, Holders holders) {
  auto folder = open_shards(shards);
  if (!folder) return folder.take_error();
  if (!*folder) return LockedShards{};
  auto lock = lock_file(held_path(*folder) / ".lock", holders);
  if (!lock) return lock.take_error();
  if (!*lock || !still_has_name(*folder, shards)) return LockedShards{};
  return LockedShards{std::move(*folder), std::move(*lock)};
}

// Renamed while it is locked, so that no host sends its shard into a folder that is being deleted. The lock
// is closed before the deletion: NFS keeps a deleted file's name in its folder while this host has it open.
Result<> remove_locked_shards(const std::filesystem::path& shards, LockedShards locked) {
  if (auto checked = check_only_shards(locked.folder, shards); !checked) return checked;
  const auto identity = identity_of(locked.folder, shards);
  if (!identity) return identity.take_error();
  auto away = rename_for_removal(shards.parent_path(), shards.filename(), *identity);
  locked.lock.reset();
  return away ? remove(std::move(*away)) : Result<>(fail(away.error()));
}

// Opening the file has an NFS client ask the server for it.
std::optional<std::int64_t> server_time_of(const std::filesystem::path& path) {
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!opened || ::fstat(opened.get(), &info) != 0) return std::nullopt;
  return nanoseconds(info.st_mtim);
}

Result<> remove_older_shards(const std::filesystem::path& folder, const PublishedShards& published,
                             const OnRemoval& on_removal) {
  NotListed others;
  const auto copies = published_checkpoints(folder, std::nullopt, &others);
  if (!copies) return copies.take_error();
  Result<> all = finish_removals(folder);
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (copies->empty() || !name.starts_with('.') || !name.ends_with(kShardsSuffix)) continue;
    // Those of a higher step are the newest, whatever the times: its other hosts may still send theirs.
    if (step_of(name.substr(1, name.size() - sizeof kShardsSuffix)) > step_of(copies->front().name)) continue;
    if (auto removed = remove_if_older(folder, name, *copies, published, on_removal); !removed && all)
      all = std::move(removed);
  }
  return all;
}

}  // namespace spark::staging
