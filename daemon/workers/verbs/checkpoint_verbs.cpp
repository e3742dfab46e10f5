// The folders that jobs write checkpoints to, and their checkpoints on a volume.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/kernel/process_stat.hpp"
#include "base/text.hpp"
#include "daemon/workers/unmounted_folder.hpp"
#include "daemon/workers/verbs/as_user.hpp"
#include "daemon/workers/verbs/hold_volume.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/files/space.hpp"
#include "staging/outputs/begun_checkpoints.hpp"
#include "staging/outputs/checkpoints.hpp"
#include "staging/outputs/destination_folder.hpp"
#include "staging/outputs/held_source.hpp"
#include "staging/outputs/job_folder.hpp"
#include "staging/outputs/pointer.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"
#include "staging/outputs/shard_folder.hpp"

namespace spark::workers {
namespace {

// Longer than the interval between a framework's last writes, on a file system with coarse times.
constexpr Duration kSettled{3'000};

// Switches to the owner of the folder and its checkpoints.
Result<uid_t> become_owner_of(const std::string& folder) {
  const auto owner = staging::owner_of_job_folder(folder);
  if (!owner) return owner.take_error();
  if (auto user = become_user(*owner); !user) return user.take_error();
  return *owner;
}

staging::Completeness completeness_of(const json::object& request) {
  return staging::completeness_named(get_text(request, "rule")).value_or(staging::Completeness());
}

// When the host booted; no value if unknown.
std::optional<std::int64_t> boot_ns() {
  const auto seconds = boot_time(SystemRoot{});
  return seconds ? std::optional(*seconds * 1'000'000'000) : std::nullopt;
}

// Where the file system of the folder is mounted; empty means unknown.
std::string mount_point_of(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(folder, error);
  struct stat own {
  }, above{};
  if (error || ::stat(path.c_str(), &own) != 0) return "";
  while (path.has_relative_path() && ::stat(path.parent_path().c_str(), &above) == 0 &&
         above.st_dev == own.st_dev)
    path = path.parent_path();
  return path;
}

// That this process has used of a core.
std::int64_t cpu_us() {
  struct rusage used {};
  (void)::getrusage(RUSAGE_SELF, &used);
  const auto in_us = [](const timeval& time) { return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec; };
  return in_us(used.ru_utime) + in_us(used.ru_stime);
}

}  // namespace

// {"path", "rule", "boot_ns", "flushed", "unchanged", "unproven": each {NAME: WRITTEN}} →
// {"uid", "boot_ns", "checkpoints": [staging::Checkpoint], "best", "cpu_us", "other", "mount", "held_in",
// "holds"}, the highest first. "flushed" lists the checkpoints known to be complete and on the drive; other
// complete ones are flushed now, or unproven (mark_unproven). "unchanged": those that have been as they are
// for a while. "unproven": see mark_unproven. "boot_ns": of the first answer, as the kernel's moves with the
// clock.
// "best": the best model that the highest complete one names. "cpu_us": what the look took of a core.
// "other": see misnamed_folder, if there is no checkpoint. "mount": see mount_point_of. "held_in": see
// holding_folder; "holds": the number of entries there. {"missing": SENTENCE, "unmounted", "held_in",
// "holds"} if there is no folder, or its file system ("unmounted") is not mounted.
Result<json::object> scan_output_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string path = get_text(request, "path");
  const auto uid = become_owner_of(path);
  const auto held_in = staging::holding_folder(path);
  json::object answer{{"held_in", held_in.native()}};
  const auto unmounted = unmounted_on_the_way(path);
  if (!unmounted.empty() || (!uid && uid.error().kind == Errc::NotFound)) {
    answer["missing"] = unmounted.empty()
                            ? printable(uid.error().message())
                            : printable(path) + " can't be examined: /etc/fstab has a file system for " +
                                  printable(unmounted.native()) + ", and it is not mounted there";
    answer["unmounted"] = !unmounted.empty();
    answer["holds"] = staging::owner_of_job_folder(held_in) ? 1 : 0;  // this process may still be root's
    return answer;
  }
  if (!uid) return uid.take_error();
  answer["holds"] = staging::held_in(held_in);
  const auto begun_us = cpu_us();
  const auto flushed = staging::states_from_json(request, "flushed");
  auto checkpoints = staging::list_checkpoints(path, completeness_of(request), SystemClock().wall(), kSettled,
                                               staging::states_from_json(request, "unchanged"), flushed);
  if (!checkpoints) return checkpoints.take_error();
  answer["cpu_us"] = cpu_us() - begun_us;  // without the flush, which waits for the drive
  if (checkpoints->empty()) answer["other"] = staging::misnamed_folder(path, completeness_of(request).rule);
  const auto known_boot_ns = get_int(request, "boot_ns");
  auto boot = boot_ns();
  if (boot && known_boot_ns) boot = std::min(*boot, *known_boot_ns);
  if (staging::mark_unproven(*checkpoints, path, flushed, boot,
                             staging::states_from_json(request, "unproven"))) {
    if (auto done = flush_file_system(path); !done) return done.take_error();
  }
  std::string best;
  bool has_complete = false;
  for (staging::Checkpoint& one : *checkpoints) {
    if (one.incomplete.empty() && !std::exchange(has_complete, true))
      best = staging::best_model_of(std::filesystem::path(path) / one.name);
    one.incomplete = printable(one.incomplete);
  }
  answer["uid"] = *uid;
  answer["mount"] = mount_point_of(path);
  answer["checkpoints"] = staging::rows_to_json(*checkpoints);
  answer["best"] = best;
  if (boot) answer["boot_ns"] = *boot;
  return answer;
}

// {"root", "mount", "mounted", "path", "rule", "uid", "check": [NAME], "local"} → {"copies":
// [staging::PublishedCopy], "same": [NAME], "begun": [staging::BegunCheckpoint], "unreadable":
// [staging::UnreadableCopy], "unknown": [NAME], "volume_bytes", "latest", "cpu_us"}. "copies", the highest
// first: the copies that stage-out published in that folder; those of "check" that lack nothing (check_whole)
// with "written". "cpu_us": what the list took of a core. "unreadable", "unknown": staging::NotListed.
// "begun": those of which only some hosts' shards are there. "same": those of "check" that lack nothing, and
// have what is in the folder "local" under the same name (has_state_of). "latest": see pointer_in. Without
// "uid": as the folder's owner.
Result<json::object> list_published_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto held = hold_volume(request, false);
  if (!held) return held.take_error();
  const auto folder = std::filesystem::path(get_text(request, "root")) / get_text(request, "path");
  const auto uid = user_of(request, folder, *held);
  if (!uid) return uid.take_error();
  if (auto user = become_user(*uid); !user) return user.take_error();
  const auto rule = staging::completeness_named(get_text(request, "rule"));
  const auto begun_us = cpu_us();
  staging::NotListed others;
  auto copies = staging::published_checkpoints(folder, rule, &others);
  if (!copies && copies.error().kind != Errc::NotFound) return copies.take_error();
  const auto check = get_strings(request, "check");
  const std::filesystem::path local = get_text(request, "local");
  std::vector<std::string> same;
  for (std::size_t i = 0; copies && i < copies->size(); ++i) {
    staging::PublishedCopy& one = (*copies)[i];
    if (std::ranges::find(check, one.name) == check.end()) continue;
    const auto whole = staging::check_whole(folder, one);
    if (whole) one = whole->copy();
    if (!whole || local.empty()) continue;
    const auto is_same = staging::has_state_of({folder, one.name}, local / one.name, kNeverStopped);
    if (is_same && *is_same) same.push_back(one.name);
  }
  for (staging::UnreadableCopy& one : others.unreadable) one.reason = printable(one.reason);
  const auto begun = staging::begun_checkpoints(folder, host_name());
  const auto space = staging::space_of(get_text(request, "root"));
  return json::object{{"copies", copies ? staging::rows_to_json(*copies) : json::array()},
                      {"begun", begun ? staging::rows_to_json(*begun) : json::array()},
                      {"same", json::value_from(same)},
                      {"unreadable", staging::rows_to_json(others.unreadable)},
                      {"unknown", json::value_from(others.unknown)},
                      {"volume_bytes", space ? space->total : 0},
                      {"latest", rule ? staging::pointer_in(folder, *rule) : ""},
                      {"cpu_us", cpu_us() - begun_us}};
}

// {"root", "mount", "mounted", "path", "uid", "keep", "keep_every", "rule", "spared": [NAME]} → {"removed":
// [NAME], "not_whole": [NAME], "warnings": [SENTENCE], "failed": ERROR}: deletes older copies that stage-out
// published in the folder of "path"; see remove_older_copies. "path" and the names in "spared" stay.
// "failed": the first failure, if there is one. Says {"deletes": NAME, "because": SENTENCE} before each.
// Moves the pointer first; where it can't be moved, the copy that it leads to stays.
Result<json::object> prune_output_verb(const json::object& request, const ProgressLine& progress) {
  const std::filesystem::path path = get_text(request, "path");
  const auto opened = open_destination(request, path.parent_path());
  if (!opened) return opened.take_error();
  staging::Keep keep{get_count(request, "keep"), get_count(request, "keep_every"), {path.filename()}};
  keep.rule = staging::completeness_named(get_text(request, "rule"));
  for (std::string& name : get_strings(request, "spared")) keep.spared.insert(std::move(name));
  if (keep.rule) (void)staging::point_at_highest(opened->folder.path, *keep.rule);
  staging::PruneNotes notes;
  notes.on_removal = [&](const staging::RemovedCopy& one) {
    progress({{"deletes", printable(one.name)}, {"because", one.because}});
  };
  const auto gone = staging::remove_older_copies(opened->folder.path, keep, notes);
  if (!gone) return gone.take_error();
  json::array removed;
  for (const staging::RemovedCopy& one : *gone) removed.emplace_back(printable(one.name));
  json::array warnings;
  for (const auto* sentences : {&notes.unproven, &notes.stays})
    for (const std::string& sentence : *sentences) warnings.emplace_back(printable(sentence));
  json::object answer{{"removed", std::move(removed)},
                      {"not_whole", json::value_from(notes.not_whole)},
                      {"warnings", std::move(warnings)}};
  if (notes.failure) answer["failed"] = to_json(*notes.failure);
  return answer;
}

// {"root", "mount", "mounted", "path", "uid", "rule"} → {}: completes what was interrupted in the folder
// "path" (finish_publishings), and moves its pointer (point_at_highest).
Result<json::object> point_output_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto opened = open_destination(request, get_text(request, "path"));
  if (!opened) return opened.take_error();
  auto finished = staging::finish_publishings(opened->folder.path);
  auto pointed = staging::point_at_highest(opened->folder.path, completeness_of(request));
  if (!pointed) return pointed.take_error();
  return empty_answer(std::move(finished));
}

// {"root", "mount", "mounted", "path", "uid", "checkpoints": [NAME]} → {}: see announce_shard; "path" is the
// folder of these checkpoints.
Result<json::object> announce_shards_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto opened = open_destination(request, get_text(request, "path"));
  if (!opened) return opened.take_error();
  for (const std::string& name : get_strings(request, "checkpoints")) {
    auto told = staging::announce_shard({opened->folder.path, name}, host_name(), SystemClock().wall());
    if (!told) return told.take_error();
  }
  return json::object{};
}

// {"path", "name", "written"} → {"source"}: see hold_checkpoint.
Result<json::object> hold_source_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string path = get_text(request, "path");
  if (const auto uid = become_owner_of(path); !uid) return uid.take_error();
  const auto held =
      staging::hold_checkpoint(path, get_text(request, "name"), get_int(request, "written").value_or(0));
  if (!held) return held.take_error();
  return json::object{{"source", held->native()}};
}

// {"folder", "keep": [NAME]} → {}: see release_checkpoints. The job's own folder may be gone.
Result<json::object> release_held_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string folder = get_text(request, "folder");
  const std::string name = std::filesystem::path(folder).filename();
  if (!name.starts_with('.') || !name.ends_with(staging::kHeldSuffix))
    return fail(Errc::Invalid, "it holds no checkpoints");
  const auto uid = become_owner_of(folder);
  if (!uid && uid.error().kind == Errc::NotFound) return json::object{};
  if (!uid) return uid.take_error();
  return empty_answer(staging::release_checkpoints(folder, get_strings(request, "keep")));
}

// {"path", "remove": {NAME: WRITTEN}, "sources": [PATH]} → {"removed": [NAME], "failed": ERROR}: removes
// local checkpoints that have not changed since, and that no copy reads. "failed": the first failure, if
// there is one. Says {"deletes": NAME} before each.
Result<json::object> tidy_output_verb(const json::object& request, const ProgressLine& progress) {
  const std::string path = get_text(request, "path");
  if (const auto uid = become_owner_of(path); !uid) return uid.take_error();
  const auto sources = get_strings(request, "sources");
  json::array removed;
  const auto note = [&](const std::string& name) {
    removed.emplace_back(name);
    progress({{"deletes", name}});
  };
  const auto all = staging::remove_checkpoints(path, staging::states_from_json(request, "remove"),
                                               {sources.begin(), sources.end()}, note);
  json::object answer{{"removed", std::move(removed)}};
  if (!all) answer["failed"] = to_json(all.error());
  return answer;
}

}  // namespace spark::workers
