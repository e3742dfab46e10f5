#include "daemon/datasets/prefetches.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::datasets {
namespace {

std::string lease_of(const std::string& dataset) {
  return staging::prefetch_lease_id(dataset);
}

}  // namespace

json::array Prefetches::in_progress() const {
  json::array names;
  for (const auto& [name, task] : activity_.tasks) {
    if (task->demand().is_prefetch) names.emplace_back(name);
  }
  return names;
}

void Prefetches::note_room(Task& task, const json::object& reserved) {
  task.has_room = true;
  task.progress["has_room"] = true;
  if (const json::array* evicted = get_array(reserved, "evicted"))
    task.evicted.insert(task.evicted.end(), evicted->begin(), evicted->end());
}

void Prefetches::tell_evicted(Task& task, Outcome& ended) {
  if (!ended || task.evicted.empty()) return;
  if (const json::array* evicted = get_array(*ended, "evicted"))
    task.evicted.insert(task.evicted.end(), evicted->begin(), evicted->end());
  (*ended)["evicted"] = std::move(task.evicted);
}

void Prefetches::note_progress(Task& task) const {
  const Demand& demand = task.attempt.demand;
  if (!demand.is_prefetch) return;
  task.has_room = task.has_room || get_string(task.progress, "phase") == "copying";
  if (task.has_room) task.progress["has_room"] = true;
  if (!demand.by) return;
  const WallTime now = context_.clock.wall();
  // A throttled copy is as fast as required.
  const bool is_held_back = get_string(task.progress, "bottleneck") == "throttle";
  const auto left = is_held_back ? std::nullopt : get_double(task.progress, "eta_s");
  const auto end = now + std::chrono::seconds(static_cast<std::int64_t>(left.value_or(0)));
  const auto late = lateness(demand, end);
  task.progress["by"] = rfc3339(*demand.by);
  task.progress["late_s"] = late ? json::value(late->count()) : json::value(nullptr);
  if (late && left && !task.attempt.is_late)
    log::warning("prefetching " + printable(task.dataset.name) + ": it can't be there by " +
                 rfc3339(*demand.by) + ", but " + format_duration(*late) + " later");
  task.attempt.is_late = task.attempt.is_late || (late && left);
}

// A staging needs their space. They resume when they are requested again.
asio::awaitable<void> Prefetches::end(TaskPtr staging, std::vector<std::string> datasets) {
  for (const std::string& name : datasets) {
    const auto found = activity_.tasks.find(name);
    if (found == activity_.tasks.end() || !found->second->demand().is_prefetch) continue;
    const TaskPtr prefetch = found->second;
    log::warning("prefetching " + printable(name) + " ends: " + printable(staging->dataset.name) +
                 " needs its room");
    prefetch->stops = Error{Errc::NoSpace,
                            "prefetching " + printable(name) + ": its room went to " +
                                printable(staging->dataset.name) + ", which a job waits for",
                            "prefetch it again after an eviction; it resumes from the copied part"};
    prefetch->cancel();
    turns_.wake_all();
    while (!prefetch->ended && !staging->is_cancelled) co_await pause_for(staging, context_.timings.settling);
  }
}

asio::awaitable<Result<std::string>> Prefetches::keep(std::string dataset, std::uint64_t generation,
                                                      Demand demand, std::string holder) {
  Lease lease;
  lease.id = lease_of(dataset);
  lease.expires = kept_until(demand, context_.clock.wall());
  const auto held = leases_.all().find(lease.id);
  if (held != leases_.all().end() && held->second.expires)
    lease.expires = std::max(*lease.expires, *held->second.expires);
  lease.dataset = std::move(dataset);
  lease.generation = generation;
  lease.holder = "a prefetch for " + holder;
  lease.is_soft = true;
  std::string id = lease.id;
  const auto granted = co_await leases_.grant(std::move(lease));
  if (!granted) co_return fail(granted.error());
  co_return id;
}

void Prefetches::taken_over(const std::string& dataset) {
  const std::string id = lease_of(dataset);
  if (leases_.all().contains(id)) (void)leases_.release(id);  // it exists
}

void Prefetches::release_evicted(const Catalog& catalog) {
  const auto names = catalog.names();
  if (!names) return;
  std::vector<std::string> gone;
  for (const auto& [id, lease] : leases_.all()) {
    if (lease.is_soft && std::ranges::find(*names, lease.dataset) == names->end()) gone.push_back(id);
  }
  for (const std::string& id : gone) (void)leases_.release(id);  // it exists
}

}  // namespace spark::datasets
