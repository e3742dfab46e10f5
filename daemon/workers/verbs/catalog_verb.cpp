// The cache as a whole: its list, its place.
#include <array>
#include <limits>

#include "base/access/locks.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "daemon/mounts/served_copies.hpp"
#include "daemon/workers/model_json.hpp"
#include "daemon/workers/unmounted_folder.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/cache/place/relocation.hpp"
#include "staging/cache/place/reset.hpp"

namespace spark::workers {
namespace {

// "good_at_s", "definition" and "older" are for the daemon: when its content was last checked; what the
// configuration said of it; its earlier generations.
json::object row_to_json(const staging::DatasetRow& row) {
  json::array older;
  for (const staging::DatasetRow& one : row.older) older.push_back(row_to_json(one));
  const bool is_failed = !row.damage.empty() || row.generation == 0;
  const std::string& reason = row.damage.empty() ? row.trouble : row.damage;
  json::object shown{
      {"name", row.name},
      {"state", row.is_evicting ? "evicting"
                : is_failed     ? "failed"
                                : "ready"},
      {"reason", or_null(reason)},
      {"doubtful", row.is_doubtful},
      {"source_generation", row.source_generation},
      {"definition", row.definition},
      {"path",
       row.is_evicting || row.generation == 0 ? json::value(nullptr) : json::value(row.path.native())},
      {"bytes", row.bytes},
      {"files", row.files},
      {"generation", row.generation},
      {"hash", row.hash},
      {"bytes_from", row.from
                         ? json::value(json::object{{"volume", row.from->volume}, {"peers", row.from->peers}})
                         : json::value(nullptr)},
      {"staged_at", rfc3339(row.staged_at)},
      {"last_used", rfc3339(row.last_used)},
      {"scrubbed_at", row.scrubbed_at ? json::value(rfc3339(*row.scrubbed_at)) : json::value(nullptr)},
      {"good_at_s", seconds_since_1970(row.good_at)},
      {"older", std::move(older)}};
  add_model(row.model, shown);
  return shown;
}

const char* word_of(staging::Relocated how) {
  constexpr std::array kWords = {"renamed", "copied", "old absent", "old deleted", "already there"};
  return kWords[static_cast<std::size_t>(how)];
}

json::array copies_to_json(const std::vector<staging::Evicted>& copies) {
  json::array all;
  for (const staging::Evicted& one : copies)
    all.push_back(json::object{{"name", one.dataset}, {"bytes", one.bytes}});
  return all;
}

// Folders that the daemon and the cache have closed, and that are open to other users nevertheless: their
// file system keeps no modes.
json::array left_open(const json::object& request) {
  const json::object* cache = get_object(request, "cache");
  json::array warnings;
  const auto look = [&](const std::filesystem::path& folder) {
    const auto closed = restrict_to(folder, 0700);
    if (!closed)
      warnings.emplace_back(printable("other users can read and lock what is in " + folder.native() + ": " +
                                      closed.error().message()));
  };
  look(staging::CacheFolder(get_text(*cache, "path")).trash());
  const auto state = get_text(*cache, "state_dir");
  if (!state.empty()) look(std::filesystem::path(state) / "stage-outs");
  return warnings;
}

}  // namespace

// {"cache", "in_progress": [TASK…], "newest": TASK} → {"datasets": [row…], "usage": status's cache object}.
// Drops the reservations of tasks up to "newest" that are not in progress.
Result<json::object> catalog_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto open = open_cache(request);
  if (!open) return open.take_error();
  std::vector<std::uint64_t> in_progress;
  if (const json::array* tasks = get_array(request, "in_progress")) {
    for (const json::value& task : *tasks) in_progress.push_back(static_cast<std::uint64_t>(task.as_int64()));
  }
  const auto newest = get_count(request, "newest");
  auto dropped = open->cache->drop_ended_reservations(in_progress, newest);
  if (!dropped) return dropped.take_error();
  auto rows = open->cache->list();
  if (!rows) return rows.take_error();
  auto usage = open->cache->usage();
  if (!usage) return usage.take_error();
  json::array datasets;
  for (const staging::DatasetRow& row : *rows) datasets.push_back(row_to_json(row));
  const bool has_inodes = usage->free_inodes != std::numeric_limits<std::uint64_t>::max();
  json::object used{
      {"path", get_text(*get_object(request, "cache"), "path")},
      {"capacity_bytes", usage->capacity},
      {"used_bytes", usage->used},
      {"free_bytes", usage->free},
      {"used_inodes", usage->used_inodes},
      {"free_inodes", has_inodes ? json::value(usage->free_inodes) : json::value(nullptr)},
      {"read_only", open->served.has_value()},
      {"writable_because", open->served ? json::value(nullptr) : json::value(open->served.error().message())},
      {"warnings", left_open(request)}};
  return json::object{{"datasets", std::move(datasets)}, {"usage", std::move(used)}};
}

// {"cache", "to", "held_by", "discard"} → {"how": "renamed" | "copied" | "old deleted" | "old absent" |
// "already there", "path", "from", "datasets", "bytes", "left": [SENTENCE…], "deleted": [{"name", "bytes"}…],
// "kept": [SENTENCE…], "brought": [{"name", "bytes"}…]}. "held_by": who has leased copies; empty: no copy is
// leased.
Result<json::object> move_cache_verb(const json::object& request, const ProgressLine& progress) {
  const auto config = cache_config_of(request);
  if (!config) return config.take_error();
  const std::filesystem::path to = get_text(request, "to");
  if (const auto unmounted = unmounted_on_the_way(to); !unmounted.empty())
    return fail(Errc::Unavailable,
                "moving the cache to " + printable(to.native()) + ": nothing is mounted on " +
                    printable(unmounted.native()) + ", which is in /etc/fstab",
                "mount its drive, then repeat this");
  staging::CopyOptions options;
  read_engine(*get_object(request, "cache"), options);
  const std::string held_by = get_text(request, "held_by");
  staging::RelocationHooks hooks;
  hooks.progress = [&](const std::string& dataset, const staging::CopyProgress& now) {
    json::object named = to_json(now);
    named["dataset"] = dataset;
    progress(named);
  };
  hooks.stop_serving = [&](const std::filesystem::path& data) -> Result<> {
    if (!held_by.empty())
      return fail(Errc::Refused,
                  "deleting the copies in " + printable(data.native()) + ": copies are leased by " + held_by +
                      ", which may read them there",
                  "repeat this once that has ended");
    const auto stopped = mounts::stop_serving_read_only(data);
    return stopped ? Result<>() : stopped.take_error();
  };
  UniqueFd host;  // see OpenCache
  hooks.work_in = [&](const std::filesystem::path& data) -> Result<> {
    auto seen = mounts::see_writable(data);
    if (!seen) return seen.take_error();
    host = std::move(*seen);
    return {};
  };
  const auto last = get_bool(request, "discard").value_or(false) ? staging::LastCopies::Deleted
                                                                 : staging::LastCopies::Brought;
  auto moved = staging::relocate(*config, to, options, SystemClock(), hooks, kNeverStopped, last);
  if (!moved) return moved.take_error();
  return json::object{{"how", word_of(moved->how)},
                      {"path", to.native()},
                      {"from", or_null(moved->from.native())},
                      {"datasets", moved->datasets},
                      {"bytes", moved->bytes},
                      {"left", json::value_from(moved->left)},
                      {"deleted", copies_to_json(moved->deleted)},
                      {"kept", json::value_from(moved->kept)},
                      {"brought", copies_to_json(moved->brought)}};
}

// {"cache", "wish"?: "forget" | "delete_copies"} → {"path", "forgotten": [{"name", "bytes"}…], "deleted":
// [the same], "set_aside"}
Result<json::object> reset_cache_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto config = cache_config_of(request);
  if (!config) return config.take_error();
  const auto host = mounts::see_writable(config->path / "data");
  if (!host) return host.take_error();
  const std::string wish = get_text(request, "wish");
  const auto reset = staging::reset_cache(*config, SystemClock(),
                                          wish == "forget"          ? staging::Wish::Forget
                                          : wish == "delete_copies" ? staging::Wish::DeleteCopies
                                                                    : staging::Wish::Nothing);
  if (!reset) return reset.take_error();
  return json::object{{"path", config->path.native()},
                      {"forgotten", copies_to_json(reset->forgotten)},
                      {"deleted", copies_to_json(reset->deleted)},
                      {"set_aside", or_null(reset->set_aside)}};
}

}  // namespace spark::workers
