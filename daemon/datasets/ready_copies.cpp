#include "daemon/datasets/requests.hpp"

#include "base/text.hpp"

namespace spark::datasets {
namespace {

bool can_be_served(const json::object& copy, const StageRequest& request) {
  return get_string(copy, "state") == "ready" &&
         (request.allow_dirty || !get_bool(copy, "doubtful").value_or(false));
}

// As stage_verb's result.
json::object staged(const json::object& copy) {
  const auto value = [&](std::string_view key) {
    const json::value* found = copy.if_contains(key);
    return found == nullptr ? json::value(nullptr) : *found;
  };
  return {{"state", "ready"},
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
}

}  // namespace

std::set<std::uint64_t> ReadyCopies::held_by(const staging::SchedulerJob& job,
                                             const std::string& dataset) const {
  std::set<std::uint64_t> generations;
  if (!job.is_set()) return generations;
  for (const Lease* lease : leases_.of(dataset)) {
    if (lease->job.key() == job.key() && lease->is_staged()) generations.insert(lease->generation);
  }
  return generations;
}

std::optional<std::string> ReadyCopies::why_away(const config::Dataset& dataset, const Error* failure) const {
  const auto source = context_.find_source(dataset);
  if (!source && source.error().kind == Errc::Unavailable)
    return context_.say_away ? context_.say_away(dataset) : source.error().what;
  // Only an attempt shows whether a plain folder is there: without its file system it is empty.
  const bool is_folder = dataset.volume.empty() && failure != nullptr;
  if (is_folder && (failure->kind == Errc::NotFound || failure->kind == Errc::Refused)) return failure->what;
  return std::nullopt;
}

std::optional<json::object> ReadyCopies::find(const StageRequest& request, const config::Dataset& dataset,
                                              const Error* failure) const {
  if (request.demand.is_prefetch || activity_.evicting.contains(dataset.name)) return std::nullopt;
  const auto held = held_by(request.job, dataset.name);
  const bool may_be_offline = request.offline || dataset.offline;
  if (held.empty() && !may_be_offline) return std::nullopt;
  const auto away = why_away(dataset, failure);
  for (const json::object& copy : catalog_.generations_of(dataset.name)) {
    const auto generation = static_cast<std::uint64_t>(get_int(copy, "generation").value_or(0));
    const bool is_wanted = held.contains(generation) || (away && may_be_offline);
    if (!is_wanted || !can_be_served(copy, request)) continue;
    json::object result = staged(copy);
    if (away) result["unchecked"] = printable(*away);
    return result;
  }
  return std::nullopt;
}

Error ReadyCopies::with_hint(Error away, const StageRequest& request, const config::Dataset& dataset) const {
  if (request.demand.is_prefetch) return away;
  for (const json::object& copy : catalog_.generations_of(dataset.name)) {
    if (!can_be_served(copy, request)) continue;
    away.hint += (away.hint.empty() ? "" : "; ") + std::string("`--offline` takes the copy of ") +
                 get_string(copy, "staged_at").value_or("") + " that is here";
    break;
  }
  return away;
}

}  // namespace spark::datasets
