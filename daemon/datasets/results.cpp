// What a request gets in the end: a copy that is served as it is, the result of a staging, or a live view
// that is kept from then on; and its lease.
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/requests.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
namespace {

// By a request that waits for it, or a job that got it. The lease of a prefetch is not that of a job.
bool is_view_used(const std::string& dataset, const Activity& activity, const Leases& leases) {
  if (activity.wanted.contains(dataset)) return true;
  const auto all = leases.of(dataset);
  return std::ranges::any_of(all, [](const Lease* lease) { return !lease->is_soft; });
}

json::object live_result(const Task& task, std::string folder) {
  const auto number = [&](const char* key) { return get_int(task.progress, key).value_or(0); };
  return {{"state", "live"},
          {"path", std::move(folder)},
          {"served_from", "live"},
          {"generation", 0},
          {"bytes", number("bytes_total")},
          {"files", number("files_total")},
          {"bytes_here", number("bytes_done")},
          {"seconds", get_double(task.progress, "seconds").value_or(0)},
          {"bytes_per_second", number("bytes_per_second")},
          {"hash", ""},
          {"memfree_drop_bytes", 0},
          {"skipped", json::array{}},
          {"warnings", json::array{}},
          {"evicted", json::array{}}};
}

// The leases of jobs that began before the copy was published become leases on it.
asio::awaitable<void> end_staging(TaskPtr task, Leases& leases, const JobLeases& jobs, live::Views& views) {
  const std::string dataset = task->dataset.name;
  if (!*task->ended) {
    std::string reason = task->ended->error().message();
    co_await views.set_failed(dataset, std::move(reason));
    co_return;
  }
  const json::object& result = **task->ended;
  const auto generation = static_cast<std::uint64_t>(get_int(result, "generation").value_or(0));
  std::vector<std::string> early;
  for (const Lease* lease : leases.of(dataset))
    if (!lease->is_staged() && (!lease->job.is_set() || jobs.is_granted(lease->id)))
      early.push_back(lease->id);
  for (const std::string& id : early) {
    const auto still = leases.all().find(id);  // it may have been released meanwhile
    if (still == leases.all().end()) continue;
    Lease lease = still->second;
    lease.generation = generation;
    auto granted = co_await leases.grant(std::move(lease));
    if (!granted) log::survived(granted.error());
  }
  std::string copy = get_string(result, "path").value_or("");
  co_await views.show_copy(dataset, std::move(copy));
}

}  // namespace

// For the request, as a worker holds what it staged.
asio::awaitable<Outcome> Requests::hold_copy(TaskPtr task) {
  json::object copy = **task->ended;
  Lease lease;
  lease.id = task->hold;
  lease.dataset = task->dataset.name;
  lease.generation = static_cast<std::uint64_t>(get_int(copy, "generation").value_or(0));
  lease.holder = "a request that is under way";
  lease.process = staging::process_with(::getpid());
  task->was_tried = true;
  const auto held = co_await leases_.serve(std::move(lease), get_string(copy, "path").value_or(""));
  if (!held) co_return fail_with(held.error(), "dataset " + printable(task->dataset.name));
  co_return copy;
}

// The object of `stage --json` as specified in the API, with the requested lease, which is granted here.
asio::awaitable<Outcome> Requests::result_of(TaskPtr task, json::object result, const StageRequest& request,
                                             std::vector<std::string>& granted) {
  result["name"] = printable(task->dataset.name);
  if (get_string(result, "state") != "live") result["state"] = "ready";
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

void Requests::view_changed() {
  for (const auto& [dataset, task] : kept_views_) task->changed.notify();
}

// The staging gets a viewer. One that is under way goes on from what it has.
void Requests::want_view(const TaskPtr& task, const StageRequest& request) {
  if (!std::exchange(task->has_view, true) && task->attempt.worker != 0 && !task->attempt.begins_again &&
      get_string(task->progress, "phase") != "publishing")
    task->begin_again();
  if (!kept_views_.emplace(task->dataset.name, task).second) return;
  ++task->users;
  task->demands.add(request.demand);
  launch(context_.executor, "live view of " + task->dataset.name, keep_view(task, request.demand, false));
}

// None: it is not live, at least not yet. The view may be of an earlier staging, whose jobs still use it.
std::optional<Outcome> Requests::live_outcome(const TaskPtr& task, const StageRequest& request) const {
  const std::string& dataset = task->dataset.name;
  const auto kept = kept_views_.find(dataset);
  if (!request.is_now(dataset) || kept == kept_views_.end() || kept->second != task) return std::nullopt;
  if (const std::string problem = views_.problem_of(dataset); !problem.empty())
    return spark::fail(Errc::Failed, "the live view of " + printable(dataset) + ": " + problem,
                       "without `now` it is staged first");
  const std::string folder = views_.folder_of(dataset);
  return folder.empty() ? std::nullopt : std::optional<Outcome>(live_result(*task, folder));
}

// Beside the requests, which end once the view can be read: the staging goes on as long as a job has the
// view, and the view stays as long as a job uses it. `is_published`: there is nothing to stage any more.
asio::awaitable<void> Requests::keep_view(TaskPtr task, Demand demand, bool is_published) {
  const std::string dataset = task->dataset.name;
  const auto is_used = [&] { return is_view_used(dataset, activity_, leases_); };
  while (!is_published && !task->ended && is_used()) co_await task->changed.wait();
  if (!is_published) {
    // Before anything else is awaited: a request that comes now waits for the copy, and is not told of an
    // end.
    if (const bool has_ended = task->ended.has_value(); has_ended) {
      co_await end_staging(task, leases_, job_leases_, views_);
    } else {
      co_await views_.end(dataset);
    }
    task->has_view = false;
    std::vector<TaskPtr> over = let_go({task}, demand);
    co_await end_holds(leases_, std::move(over));
  }
  while (views_.has(dataset) && is_used()) co_await task->changed.wait();
  co_await views_.end(dataset);
  kept_views_.erase(dataset);
}

void Requests::resume_view(const std::string& dataset, bool is_published) {
  StageRequest request;
  auto found = config::find_dataset(context_.config(), dataset);
  config::Dataset settings = found ? std::move(*found) : config::Dataset{};
  settings.name = dataset;  // one that is not in the configuration any more fails
  TaskPtr task = is_published ? std::make_shared<Task>(context_.executor, ++activity_.newest_task, settings)
                              : make_task(settings, request);
  task->has_view = true;
  kept_views_[dataset] = task;
  job_leases_.keep(dataset);
  if (!is_published) {
    ++task->users;
    launch(context_.executor, "staging " + dataset, attempts_.run(task));
  }
  launch(context_.executor, "live view of " + dataset, keep_view(task, request.demand, is_published));
}

}  // namespace spark::datasets
