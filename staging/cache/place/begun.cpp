#include "staging/cache/place/begun.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/place/left_behind.hpp"
#include "staging/copy/need.hpp"
#include "staging/copy/partial/file_lock.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPoll{100};

Result<UnwantedCopy> look_at(const Destination& copy, const StopFlag& stop) {
  UnwantedCopy found{copy.folder.filename().native(), copy};
  if (auto manifest = ManifestReader::open(copy.manifest())) found.dataset = manifest->header().dataset;
  auto looked = look_before_deleting(std::vector{copy.path()}, stop);
  if (!looked) return looked.take_error();
  found.freed = looked->freed;
  found.obstacle = std::move(looked->obstacle);
  found.is_open = looked->passes;
  return found;
}

// None while another process has it, or has just deleted it.
Result<UniqueFd> try_to_hold(const fs::path& folder) {
  UniqueFd held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!held) return fail_errno(errno, "opening folder " + printable(folder.native()));
  if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return UniqueFd();
    return fail_errno(errno, "locking folder " + printable(folder.native()));
  }
  return still_has_name(held, folder) ? std::move(held) : UniqueFd();
}

// The callers delete folders without a copy, so an unreadable folder must be an error, not an empty list.
Result<std::vector<std::string>> names_in(const fs::path& folder) {
  std::error_code error;
  auto names = names_in_folder(folder, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    return fail_errno(error.value(), "listing " + printable(folder.native()));
  return names;
}

Result<> delete_copy(const Destination& copy) {
  if (auto removed = remove_tree(copy.folder, copy.name); !removed) return removed;
  if (::unlink(copy.manifest().c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "deleting " + printable(copy.manifest().native()));
  return {};
}

}  // namespace

fs::path filling_of(const CacheFolder& to, const Destination& place) {
  return to.path() / kFilling / (place.folder.filename().native() + "." + place.name);
}

Result<Bytes> taken_by(const fs::path& filling) {
  const Destination place{filling.parent_path(), filling.filename()};
  Bytes taken = 0;
  for (const fs::path& path : {filling, place.partial() / "data"}) {
    const auto footprint = footprint_of(path);
    if (!footprint) return footprint.take_error();
    taken += footprint->bytes;
  }
  return taken;
}

Result<> delete_others(const CacheFolder& to, const std::set<fs::path>& fillings) {
  std::set<std::string> kept;
  for (const fs::path& filling : fillings) {
    const Destination place{filling.parent_path(), filling.filename()};
    for (const fs::path& path : {filling, place.manifest(), place.partial()})
      kept.insert(path.filename().native());
  }
  const auto names = names_in(to.path() / kFilling);
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (kept.contains(name)) continue;
    if (auto removed = remove_tree(to.path() / kFilling, name); !removed) return removed;
  }
  return {};
}

Result<UniqueFd> hold_filling(const CacheFolder& to, std::chrono::milliseconds patience) {
  const fs::path folder = to.path() / kFilling;
  for (auto waited = kPoll * 0;; waited += kPoll) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return fail_errno(errno, "making folder " + printable(folder.native()));
    auto held = try_to_hold(folder);
    const bool is_gone = !held && held.error().kind == Errc::NotFound;
    if (!is_gone && (!held || *held)) return held;
    if (waited >= patience)
      return fail(Errc::Unavailable,
                  "locking folder " + printable(folder.native()) + ": another process works there",
                  "`spark-stage jobs` shows what is going on; repeat this once that has ended");
    std::this_thread::sleep_for(kPoll);
  }
}

// The deletion first: what is deleted may be what fills the drive.
Result<> settle_in(const fs::path& cache) {
  const auto mark = mark_in(cache);
  if (!mark) return mark.take_error();
  if (!mark->id.empty() && mark->was_in_force) return {};
  const auto held = try_to_hold(cache / kFilling);
  const bool has_none = !held && held.error().kind == Errc::NotFound;
  if (!held && !has_none) return held.take_error();
  if (held && *held)
    if (auto removed = remove_tree(cache, kFilling); !removed) return removed;
  return mark->id.empty() ? Result<>() : write_mark(cache, {mark->id, mark->from, true});
}

Wanted wanted_of(const std::vector<GenerationRow>& all, const std::vector<GenerationRow>& moved,
                 const std::set<std::string>& there) {
  Wanted wanted;
  for (const GenerationRow& row : all)
    if (row.state == GenerationState::Ready) wanted[folder_name(row.dataset)] = {};
  for (const GenerationRow& row : moved)
    wanted[folder_name(row.dataset)] = {row.generation, there.contains(row.dataset)};
  return wanted;
}

Result<std::vector<UnwantedCopy>> find_unwanted(const CacheFolder& to, const Wanted& wanted,
                                                bool was_in_force, const StopFlag& stop) {
  std::vector<UnwantedCopy> unwanted;
  const auto keys = names_in(to.data());
  if (!keys) return keys.take_error();
  for (const std::string& key : *keys) {
    const auto known = wanted.find(key);
    const WantedCopy* one = known == wanted.end() ? nullptr : &known->second;
    if (one != nullptr && one->generation == 0) continue;
    const auto names = names_in(to.data() / key);
    if (!names) return names.take_error();
    for (const std::string& name : *names) {
      const auto number = parse_number<std::uint64_t>(name);
      if (!number || (one != nullptr && one->is_there && *number == one->generation)) continue;
      auto copy = look_at({to.data() / key, name}, stop);
      if (!copy) return copy.take_error();
      copy->is_replaced = one != nullptr && *number != one->generation;
      if (was_in_force && (one == nullptr || *number >= one->generation)) {
        copy->obstacle = "it was staged there, when that was the cache, and may be in no other place";
        copy->is_left_here = true;
      }
      unwanted.push_back(std::move(*copy));
    }
  }
  return unwanted;
}

Result<> delete_unwanted(std::vector<UnwantedCopy>& copies, const StopFlag& stop) {
  for (UnwantedCopy& copy : copies) {
    auto now = copy.is_left_here ? Result<UnwantedCopy>(copy) : look_at(copy.place, stop);
    if (!now) return now.take_error();
    now->is_replaced = copy.is_replaced;
    copy = std::move(*now);
    if (!copy.obstacle.empty()) continue;
    if (auto deleted = delete_copy(copy.place); !deleted) return deleted;
  }
  return {};
}

Result<> delete_unnamed(const CacheFolder& to, const Wanted& wanted,
                        const std::vector<UnwantedCopy>& copies) {
  std::set<std::string> kept;
  for (const UnwantedCopy& copy : copies)
    if (!copy.obstacle.empty()) kept.insert(copy.place.folder.filename().native());
  const auto keys = names_in(to.data());
  if (!keys) return keys.take_error();
  for (const std::string& key : *keys) {  // manifests without a copy
    if (wanted.contains(key) || kept.contains(key)) continue;
    if (auto removed = remove_tree(to.data(), key); !removed) return removed;
  }
  return {};
}

}  // namespace spark::staging
