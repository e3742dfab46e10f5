// What a request gets in the end: a copy that is served as it is, or the result of a staging; and its lease.
#include "daemon/datasets/requests.hpp"

#include "base/text.hpp"
#include "daemon/token.hpp"

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

// The object of `stage --json` as specified in the API, with the requested lease, which is granted here.
asio::awaitable<Outcome> Requests::result_of(TaskPtr task, json::object result, const StageRequest& request,
                                             std::vector<std::string>& granted) {
  result["name"] = printable(task->dataset.name);
  result["state"] = "ready";
  result.erase("reserved");  // internal to the daemon and its worker
  result.erase("blocked_by");
  result.erase("held");
  if (!task->dataset.env.empty()) result["env"] = task->dataset.env;
  if (!request.demand.is_prefetch) prefetches_.taken_over(task->dataset.name);
  if (!request.wants_lease()) co_return result;
  const auto generation = static_cast<std::uint64_t>(get_int(result, "generation").value_or(0));
  const auto lease = co_await grant(request, task->dataset.name, generation, granted);
  if (!lease) co_return fail_with(lease.error(), "staging " + printable(task->dataset.name));
  result["lease"] = *lease;
  if (request.demand.by) {
    const auto late = lateness(request.demand, context_.clock.wall());
    result["by"] = rfc3339(*request.demand.by);
    result["late_s"] = late ? json::value(late->count()) : json::value(nullptr);
  }
  co_return result;
}

JobClaim Requests::claim_of(const StageRequest& request, const std::string& dataset) const {
  JobClaim claim{request.job, dataset, {}};
  if (request.lease) claim.expires = context_.clock.wall() + *request.lease;
  return claim;
}

// The ID of the requested lease. `granted`: the leases to end if the request fails.
asio::awaitable<Result<std::string>> Requests::grant(const StageRequest& request, std::string dataset,
                                                     std::uint64_t generation,
                                                     std::vector<std::string>& granted) {
  if (request.demand.is_prefetch) {
    std::string holder = request.asker.holder;
    co_return co_await prefetches_.keep(std::move(dataset), generation, request.demand, std::move(holder));
  }
  if (request.job.is_set()) {
    JobClaim claim = claim_of(request, dataset);
    co_return co_await job_leases_.hold(std::move(claim), generation);
  }
  Lease lease;
  lease.id = new_lease_id();
  lease.dataset = std::move(dataset);
  lease.generation = generation;
  lease.holder = request.asker.holder;
  lease.process = request.process;
  lease.cgroup = request.cgroup;
  if (request.lease) lease.expires = context_.clock.wall() + *request.lease;
  const std::string id = lease.id;
  granted.push_back(id);
  activity_.early_leases.insert(id);
  const auto held = co_await leases_.grant(std::move(lease));
  if (!held) co_return fail(held.error());
  co_return id;
}

}  // namespace spark::datasets
