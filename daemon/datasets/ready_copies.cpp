#include "daemon/datasets/ready_copies.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"

namespace spark::datasets {
namespace {

bool can_be_served(const json::object& copy, const StageRequest& request) {
  return get_string(copy, "state") == "ready" &&
         (request.allow_dirty || !get_bool(copy, "doubtful").value_or(false));
}

std::uint64_t generation_of(const json::object& copy) {
  return get_count(copy, "generation");
}

// A copy of what the configuration says now. Earlier versions did not note what it said.
bool is_of_same_source(const json::object& copy, const config::Dataset& dataset) {
  const auto definition = get_text(copy, "definition");
  return definition.empty() || definition == definition_of(dataset);
}

bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(path.begin(), path.end(), folder.begin(), folder.end()).second == folder.end();
}

// A job, a process with its descendants, or a control group with those below it.
bool holds(const StageRequest& request, const Lease& lease) {
  if (!lease.is_staged() || lease.is_soft) return false;
  if (request.job.is_set()) return lease.job.key() == request.job.key();
  if (!lease.cgroup.path.empty() && is_within(request.caller_cgroup.path, lease.cgroup.path)) return true;
  return std::ranges::any_of(request.callers, [&](const staging::ProcessId& caller) {
    const auto& others = lease.job.processes;
    return caller == lease.process || std::ranges::find(others, caller) != others.end();
  });
}

// As stage_verb's result.
json::object staged(const json::object& copy) {
  const auto value = [&](std::string_view key) {
    const json::value* found = copy.if_contains(key);
    return found == nullptr ? json::value(nullptr) : *found;
  };
  json::object result{{"state", "ready"},
                      {"path", value("path")},
                      {"served_from", "cache"},
                      {"generation", value("generation")},
                      {"bytes", value("bytes")},
                      {"files", value("files")},
                      {"seconds", 0},
                      {"bytes_per_second", 0},
                      {"hash", value("hash")},
                      {"memfree_drop_bytes", 0},
                      {"resumed_bytes", 0},
                      {"bytes_from", json::object{{"volume", 0}, {"peers", 0}}},
                      {"unchanged_bytes", 0},
                      {"skipped", json::array{}},
                      {"outside_links", 0},
                      {"copied_links", 0},
                      {"warnings", json::array{}},
                      {"evicted", json::array{}}};
  for (const char* key :
       {"model", "revision", "checked", "absent_files", "hub_cache", "hub_folder"})  // of a model
    if (copy.contains(key)) result[key] = value(key);
  return result;
}

}  // namespace

std::set<std::uint64_t> ReadyCopies::held_by(const StageRequest& request, const std::string& dataset) const {
  std::set<std::uint64_t> generations;
  for (const Lease* lease : leases_.of(dataset)) {
    if (holds(request, *lease) && staging::is_live(*lease, context_.clock.wall()))
      generations.insert(lease->generation);
  }
  return generations;
}

std::optional<std::string> ReadyCopies::why_away(const config::Dataset& dataset, const Error* failure) const {
  const auto source = context_.find_source(dataset);
  if (!source && source.error().kind == Errc::Unavailable) return source.error().what;
  // Only an attempt shows whether a plain folder is there, or peers answer.
  if (dataset.volume.empty() && failure != nullptr && failure->is_away) return failure->what;
  return std::nullopt;
}

bool ReadyCopies::allows_old(const StageRequest& request, const config::Dataset& dataset) const {
  return request.offline || dataset.offline;
}

std::optional<json::object> ReadyCopies::choose(const StageRequest& request, const config::Dataset& dataset,
                                                bool stands_in) const {
  const bool is_excluded = request.demand.is_prefetch || activity_.evicting.contains(dataset.name);
  const bool asks_for_held = !is_excluded && !request.accepts_source;
  const auto held = asks_for_held ? held_by(request, dataset.name) : std::set<std::uint64_t>();
  stands_in = stands_in && !is_excluded && allows_old(request, dataset);
  if (held.empty() && !stands_in) return std::nullopt;
  std::optional<json::object> stand_in;
  for (json::object& copy : catalog_.generations_of(dataset.name)) {
    if (!can_be_served(copy, request)) continue;
    if (held.contains(generation_of(copy))) return std::move(copy);
    if (stands_in && !stand_in && is_of_same_source(copy, dataset)) stand_in = std::move(copy);
  }
  return stand_in;
}

std::optional<json::object> ReadyCopies::find(const StageRequest& request, const config::Dataset& dataset,
                                              const Error* failure) const {
  const auto away = why_away(dataset, failure);
  const bool is_short = context_.may_be_back_soon && context_.may_be_back_soon(dataset);
  const auto copy = choose(request, dataset, away && !is_short);
  if (!copy) return std::nullopt;
  json::object result = staged(*copy);
  if (away) result["unchecked"] = printable(*away);
  return result;
}

Result<json::object> ReadyCopies::find_mounted(const StageRequest& request) const {
  const std::string& dataset = request.datasets.front();
  if (const auto catalog = catalog_.known(); !catalog) return catalog.take_error();
  for (const json::object& copy : catalog_.generations_of(dataset)) {
    if (generation_of(copy) == request.generation && get_string(copy, "path")) return staged(copy);
  }
  return fail(Errc::NotFound, "generation " + std::to_string(request.generation) + " of dataset " +
                                  printable(dataset) + " is not in the cache any more");
}

bool ReadyCopies::may_serve(const StageRequest& request, const config::Dataset& dataset) const {
  if (catalog_.is_being_opened() && !request.demand.is_prefetch)
    return allows_old(request, dataset) || !held_by(request, dataset.name).empty();
  return choose(request, dataset, true).has_value();
}

Error ReadyCopies::with_hint(Error away, const StageRequest& request, const config::Dataset& dataset) const {
  StageRequest old = request;
  old.offline = true;
  const auto copy = why_away(dataset, &away) ? choose(old, dataset, true) : std::nullopt;
  if (!copy) return away;
  away.hint += (away.hint.empty() ? "" : "; ") + std::string("`--offline` takes the copy of ") +
               get_text(*copy, "staged_at") + " that is here";
  return away;
}

}  // namespace spark::datasets
