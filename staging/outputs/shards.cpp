#include "staging/outputs/shards.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/begun_join.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

// A look takes some calls to the volume's server, so two seconds are time enough for another host's.
constexpr std::chrono::milliseconds kShortestPause{100};
constexpr int kMostLooks = 20;

// The part of the checkpoint that one host sent.
struct Shard {
  std::string host, attempt;
  Tree tree;
  Entries entries;
};

// One entry of the checkpoint, and the shard that contains it.
struct ShardEntry {
  const Shard* shard;
  const Entry* entry;
};
using ShardEntries = std::map<std::string_view, ShardEntry>;  // by path; the root first

Result<Entries> read_entries(const Destination& copy) {
  auto manifest = manifest_of_published(copy);
  if (!manifest) return manifest.take_error();
  if (!*manifest) return fail(Errc::Unavailable, "shard " + shown_path(copy.path()) + " went away");
  return entries_of(**manifest);
}

Result<std::vector<Shard>> read_shards(const std::filesystem::path& folder) {
  const auto copies = published_copies(folder);
  if (!copies) return copies.take_error();
  std::vector<Shard> shards;
  for (const PublishedCopy& copy : *copies) {
    auto tree = open_tree(folder / copy.name, RootLink::Refused);
    if (!tree) return tree.take_error();
    auto entries = read_entries({folder, copy.name});
    if (!entries) return entries.take_error();
    shards.push_back({copy.name, attempt_of(folder, copy.name), std::move(*tree), std::move(*entries)});
  }
  return shards;
}

bool is_same_content(const Entry& one, const Entry& other) {
  return one.type == other.type && one.size == other.size && one.hash == other.hash &&
         one.target == other.target;
}

const Entry* entry_named(const Entries& entries, std::string_view path) {
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& entry) { return entry.path.view() == path; });
  return found == entries.end() ? nullptr : &*found;
}

// Sorted, as those of a begun join.
std::vector<std::string> hosts_of(const std::vector<Shard>& shards) {
  std::vector<std::string> hosts;
  for (const Shard& shard : shards) hosts.push_back(shard.host);
  std::ranges::sort(hosts);
  return hosts;
}

ShardTimes times_of(const std::vector<Shard>& shards) {
  ShardTimes times;
  for (const Shard& shard : shards) {
    if (!shard.entries.empty()) times[shard.host] = shard.entries.front().mtime_ns;
  }
  return times;
}

// `own`: the marker of this attempt. Returns the hosts whose shards are of others.
std::vector<std::string> remove_other_attempts(std::vector<Shard>& shards, const Entry* own,
                                               const SameAttempt& attempt) {
  const bool has_marker = !attempt.marker.empty() && own != nullptr;
  const Entry expected = has_marker ? *own : Entry();
  const auto is_other = [&](const Shard& shard) {
    if (shard.attempt != attempt.text) return true;
    if (!has_marker) return false;
    const Entry* there = entry_named(shard.entries, attempt.marker);
    return there == nullptr || !is_same_content(*there, expected);
  };
  std::vector<std::string> others;
  for (const Shard& shard : shards) {
    if (is_other(shard)) others.push_back(shard.host);
  }
  std::erase_if(shards, is_other);
  std::ranges::sort(others);
  return others;
}

// The shards are newest first: the root is that of the host that finished last.
Result<ShardEntries> merge(const std::vector<Shard>& shards, const std::string& shown) {
  ShardEntries merged;
  for (const Shard& shard : shards) {
    for (const Entry& entry : shard.entries) {
      const auto [known, is_new] = merged.try_emplace(entry.path.view(), ShardEntry{&shard, &entry});
      if (is_new || is_same_content(*known->second.entry, entry)) continue;
      return fail(Errc::Refused,
                  shown + ": the hosts " + printable(known->second.shard->host) + " and " +
                      printable(shard.host) + " have different files called " +
                      printable(std::string(entry.path.view())),
                  "have each host write files of its own names, then send them again");
    }
  }
  return merged;
}

// The files of several hosts have different names in one folder.
Result<> check_are_folders(const std::vector<Shard>& shards, const std::string& shown) {
  for (const Shard& shard : shards) {
    if (!shard.entries.empty() && shard.entries.front().type == EntryType::Folder) continue;
    return fail(Errc::Invalid,
                shown + ": the host " + printable(shard.host) +
                    " has sent one file, but a checkpoint of several hosts is a folder",
                "have each host save its files to a folder of that name, then send it again");
  }
  return {};
}

// An interrupted call may already have moved it.
Result<> move_entry(const ShardEntry& moved, const Tree& to) {
  const std::string_view path = moved.entry->path;
  const Parent source = open_parent(moved.shard->tree, path), target = open_parent(to, path);
  const auto rename = [&] {
    return ::renameat(source.folder.get(), source.name.c_str(), target.folder.get(), target.name.c_str()) ==
           0;
  };
  struct stat info {};
  if (source.folder && target.folder) {
    if (rename()) return {};
    // The owner has no write permission on the folder; it is deleted afterwards.
    const bool is_opened = errno == EACCES && ::fchmod(source.folder.get(), 0700) == 0;
    if (is_opened && rename()) return {};
    if (errno == ENOENT &&
        ::fstatat(target.folder.get(), target.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
      return {};
  }
  return fail_errno(errno, "moving " + moved.shard->tree.shown(path) + " to " + to.shown(path));
}

Result<> make_folder(const Tree& tree, const Entry& entry) {
  const Parent parent = open_parent(tree, entry.path);
  if (parent.folder && (::mkdirat(parent.folder.get(), parent.name.c_str(), 0700) == 0 || errno == EEXIST))
    return {};
  return fail_errno(errno, "making folder " + tree.shown(entry.path));
}

// Called last, the innermost folder first: moving a file into a folder changes the folder's time.
Result<> settle_folder(const Tree& tree, const Entry& entry) {
  const UniqueFd folder = entry.path.empty() ? UniqueFd(::fcntl(tree.folder.get(), F_DUPFD_CLOEXEC, 0))
                                             : open_beneath(tree, entry.path, O_RDONLY | O_DIRECTORY);
  if (!folder) return fail_errno(errno, "opening folder " + tree.shown(entry.path));
  if (auto put = put_plain_metadata(folder.get(), entry, tree.shown(entry.path)); !put) return put;
  if (::fsync(folder.get()) != 0) return fail_errno(errno, "flushing " + tree.shown(entry.path));
  return {};
}

Result<> gather(const ShardEntries& merged, const std::filesystem::path& data, const StepHook& hook) {
  std::error_code error;
  std::filesystem::create_directory(data, error);
  if (error) return fail_errno(error.value(), "making folder " + shown_path(data));
  const auto tree = open_tree(data);
  if (!tree) return tree.take_error();
  for (const auto& [path, one] : merged) {
    if (path.empty()) continue;
    auto done =
        one.entry->type == EntryType::Folder ? make_folder(*tree, *one.entry) : move_entry(one, *tree);
    if (!done) return done;
    if (auto go_on = after(hook, "moved"); !go_on) return go_on;
  }
  for (auto at = merged.rbegin(); at != merged.rend(); ++at) {
    if (at->second.entry->type != EntryType::Folder) continue;
    if (auto settled = settle_folder(*tree, *at->second.entry); !settled) return settled;
  }
  return {};
}

// True if these very entries are at the checkpoint's name, false if nothing is there, or an earlier attempt
// of the job, if markers tell attempts apart. Anything else is an error.
Result<bool> is_there_already(const Destination& destination, const Entries& entries,
                              const std::string& marker) {
  auto earlier = earlier_copy(destination);
  if (!earlier) return earlier.take_error();
  if (!*earlier) return false;
  const auto summary = summary_of(**earlier);
  if (!summary) return summary.take_error();
  if (summary->hash == summary_of(entries).hash) return true;
  if (!marker.empty()) return false;
  return other_files_at({destination.folder, destination.name});
}

Result<> publish_shards(const Destination& destination, PartialArea& area, const std::vector<Shard>& shards,
                        const std::string& marker, const StepHook& hook) {
  const std::string shown = shown_path(destination.path());
  if (auto are_folders = check_are_folders(shards, shown); !are_folders) return are_folders;
  if (auto recovered = recover_publishing(destination, area); !recovered) return recovered;
  const auto merged = merge(shards, shown);
  if (!merged) return merged.take_error();
  Manifest manifest;
  manifest.source = present_path(destination.path()).native();  // each host has a different one
  for (const auto& [path, one] : *merged) manifest.entries.push_back(*one.entry);
  const auto is_done = is_there_already(destination, manifest.entries, marker);
  if (!is_done) return is_done.take_error();
  if (*is_done) return area.clear();
  // Also deletes what a copy of one host has left there.
  if (auto begun = area.keep_only(state_of_join(hosts_of(shards))); !begun) return begun;
  if (auto gathered = gather(*merged, area.data(), hook); !gathered) return gathered;
  auto sealed = seal(area, std::move(manifest));
  if (!sealed) return sealed.take_error();
  return publish(destination, area, sealed->root, hook, Replacing::AsPossible);
}

Result<Joined> try_join(const ShardedCheckpoint& checkpoint, unsigned nodes, const SameAttempt& attempt,
                        const StepHook& hook) {
  Joined joined;
  const Destination destination{checkpoint.folder, checkpoint.name};
  auto lock = lock_shards(checkpoint.shards(), Holders::One);
  if (!lock) return lock.take_error();
  const bool is_alone = static_cast<bool>(*lock);
  if (!is_alone) lock = lock_shards(checkpoint.shards(), Holders::Many);  // other hosts are sending theirs
  if (!lock) return lock.take_error();
  if (!*lock) return joined;
  auto shards = read_shards(lock->path());
  if (!shards && !is_alone) return joined;  // one of them is being replaced
  if (!shards) return shards.take_error();
  auto begun = hosts_of_begun_join(checkpoint);
  if (!begun) return begun.take_error();
  if (is_alone && !std::ranges::includes(hosts_of(*shards), *begun)) {
    if (auto removed = remove_begun_join(checkpoint); !removed) return removed.take_error();
    begun->clear();
  }
  if (begun->empty()) {
    const auto own = std::ranges::find(*shards, attempt.host, &Shard::host);
    const Entry* marker = own == shards->end() ? nullptr : entry_named(own->entries, attempt.marker);
    joined.others = remove_other_attempts(*shards, marker, attempt);
  } else {
    std::erase_if(*shards,
                  [&](const Shard& shard) { return !std::ranges::binary_search(*begun, shard.host); });
  }
  joined.hosts = hosts_of(*shards);
  const std::size_t wanted = begun->empty() ? nodes : begun->size();
  if (!is_alone || shards->size() < wanted) return joined;
  auto area = PartialArea::try_open(destination.partial());
  if (!area) return area.take_error();
  if (auto published = publish_shards(destination, *area, *shards, attempt.marker, hook); !published)
    return published.take_error();
  if (auto removed = remove_locked_shards(checkpoint.shards(), std::move(*lock)); !removed)
    return removed.take_error();
  joined.is_published = true;
  joined.times = times_of(*shards);
  return joined;
}

}  // namespace

tl::unexpected<Error> other_files_at(const ShardedCheckpoint& checkpoint) {
  return fail(
      Errc::Refused,
      shown_path(checkpoint.path()) + " is there already, with other files than the hosts have sent now",
      "choose another name; before you delete it, see whether it is what the hosts sent before");
}

// Each of two hosts that have sent their shards at the same time would see the other one's lock, that of its
// copy or of its own look, and leave the join to it.
Result<Joined> join_shards(const ShardedCheckpoint& checkpoint, unsigned nodes, const SameAttempt& attempt,
                           const StepHook& hook) {
  const auto pause = kShortestPause + std::chrono::milliseconds(::getpid() % kShortestPause.count());
  for (int left = kMostLooks - 1;; --left) {
    auto joined = try_join(checkpoint, nodes, attempt, hook);
    const bool is_due = joined && !joined->is_published && joined->hosts.size() >= nodes;
    if (!is_due || left == 0) return joined;
    std::this_thread::sleep_for(pause);
  }
}

Result<> remove_published_shards(const ShardedCheckpoint& checkpoint, const SameAttempt& attempt) {
  auto lock = lock_shards(checkpoint.shards(), Holders::One);
  if (!lock) return lock.take_error();
  if (!*lock) return {};
  const auto published = read_entries({checkpoint.folder, checkpoint.name});
  if (!published) return published.take_error();
  auto shards = read_shards(lock->path());
  if (!shards) return shards.take_error();
  const Entry* marker = entry_named(*published, attempt.marker);
  if (!remove_other_attempts(*shards, marker, attempt).empty()) return {};
  return remove_locked_shards(checkpoint.shards(), std::move(*lock));
}

}  // namespace spark::staging
