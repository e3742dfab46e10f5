// What a request gets in the end: a copy that is served as it is, the result of a staging, or a live view;
// and its lease.
#include <unistd.h>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/requests.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
namespace {

// The shared staging was for requests that do not accept what the source has become.
bool is_refused_for_others(const Task& task, const StageRequest& request) {
  return request.accepts_source && !task.accepts_source && task.ended && !*task.ended &&
         task.ended->error().kind == Errc::Refused;
}

// The shared staging looked at its source before the request: changes since then are not in the copy.
bool is_older(const Task& task, const StageRequest& request) {
  const bool is_staged = task.was_tried && task.ended && task.ended->has_value();
  return is_staged && !task.is_copy && !request.demand.is_prefetch && task.attempt.requests < request.number;
}

bool is_live(const json::object& result) {
  return get_string(result, "state") == "live";
}

}  // namespace

// The job gets nothing before it can have all: until then a view may fail, and its copy become complete.
asio::awaitable<Outcome> Requests::wait_for(std::shared_ptr<Job> job, Tasks tasks,
                                            const StageRequest& request, std::vector<std::string>& granted) {
  std::vector<json::object> results(tasks->size());
  bool has_all = false;
  for (bool is_first = true; !has_all; is_first = false) {
    has_all = true;
    for (std::size_t at = 0; at < results.size(); ++at) {
      TaskPtr& task = (*tasks)[at];
      if (!results[at].empty() || (!is_first && views_.is_live(*task, request))) continue;
      auto outcome = co_await newest_outcome_of(job, tasks, task, request);
      if (!outcome) co_return outcome;
      has_all = false;
      if (is_live(*outcome)) continue;
      auto result = co_await result_of(task, std::move(*outcome), request, granted);
      if (!result) co_return result;
      results[at] = std::move(*result);
    }
  }
  json::array all;
  // Each lease is waited for, while another view may fail.
  const auto failure = [&]() -> std::optional<Outcome> {
    for (std::size_t at = 0; at < results.size(); ++at) {
      const bool is_one = results[at].empty() || is_live(results[at]);
      auto view = is_one ? views_.outcome(*(*tasks)[at], request) : std::nullopt;
      if (view && !*view) return view;
    }
    return std::nullopt;
  };
  for (std::size_t at = 0; at < results.size(); ++at) {
    if (auto failed = failure()) co_return std::move(*failed);
    if (results[at].empty()) {
      auto outcome = co_await newest_outcome_of(job, tasks, (*tasks)[at], request);
      if (!outcome) co_return outcome;
      auto result = co_await result_of((*tasks)[at], std::move(*outcome), request, granted);
      if (!result) co_return result;
      results[at] = std::move(*result);
    }
    all.push_back(results[at]);
  }
  if (auto failed = failure()) co_return std::move(*failed);
  if (!job->is_running()) co_return fail(Errc::Cancelled, "the job was cancelled");
  json::object result{{"datasets", std::move(all)}};
  co_return result;
}

// At least as new as the request.
asio::awaitable<Outcome> Requests::newest_outcome_of(std::shared_ptr<Job> job, Tasks tasks, TaskPtr& task,
                                                     const StageRequest& request) {
  auto outcome = co_await outcome_of(job, task, request);
  bool may_be_gone = request.generation == 0;  // the copy that was in the last list of the cache
  const auto is_gone = [&] {
    return task->is_copy && !outcome && outcome.error().kind == Errc::Unavailable &&
           std::exchange(may_be_gone, false);
  };
  while (job->is_running() &&
         (is_refused_for_others(*task, request) || is_older(*task, request) || is_gone())) {
    co_await stage_again(task, request);
    watch(job, tasks, request);
    outcome = co_await outcome_of(job, task, request);
  }
  co_return outcome;
}

// Of the task; or of a copy that stands in for its source while that is away, which then replaces the task.
asio::awaitable<Outcome> Requests::outcome_of(std::shared_ptr<Job> job, TaskPtr& task,
                                              const StageRequest& request) {
  bool may_get_another = true;  // of an earlier request's, which has failed
  while (!task->is_copy) {
    if (!job->is_running()) co_return fail(Errc::Cancelled, "the job was cancelled");
    if (task->ended && *task->ended) {
      if (get_bool(**task->ended, "held").value_or(true)) co_return *task->ended;
      break;  // there was no space for its worker's hold: perhaps there is now
    }
    const bool is_now = request.is_now(task->dataset.name);
    const Error* failure = task->ended ? &task->ended->error() : task->away ? &*task->away : nullptr;
    auto copy = failure != nullptr ? copies_.find(request, task->dataset, failure) : std::nullopt;
    if (copy) {
      (void)turns_.let_go({task}, request.demand);  // it staged nothing that is held
      task = task_of(task->dataset, std::move(*copy), request);
    } else if (task->ended) {
      co_return *task->ended;
    } else if (is_now && may_get_another && views_.has_failed(*task) && views_.replace(task, request)) {
      may_get_another = false;
    } else if (auto live = is_now ? views_.outcome(*task, request) : std::nullopt) {
      co_return std::move(*live);
    } else {
      job->set_progress(task->progress);
      co_await task->changed.wait();
    }
  }
  auto held = co_await hold_copy(task);
  co_return held;
}

// For the request, as a worker holds what it staged.
asio::awaitable<Outcome> Requests::hold_copy(TaskPtr task) {
  json::object copy = **task->ended;
  Lease lease;
  lease.id = task->hold;
  lease.dataset = task->dataset.name;
  lease.generation = get_count(copy, "generation");
  lease.holder = "a request that is under way";
  lease.process = staging::process_with(::getpid());
  task->was_tried = true;
  const auto held = co_await leases_.serve(std::move(lease), get_text(copy, "path"));
  if (!held) co_return fail_with(held.error(), "dataset " + printable(task->dataset.name));
  co_return copy;
}

// The object of `stage --json` as specified in the API, with the requested lease, which is granted here.
asio::awaitable<Outcome> Requests::result_of(TaskPtr task, json::object result, const StageRequest& request,
                                             std::vector<std::string>& granted) {
  result["name"] = printable(task->dataset.name);
  if (!is_live(result)) result["state"] = "ready";
  result.erase("reserved");  // internal to the daemon and its worker
  result.erase("blocked_by");
  result.erase("held");
  if (!task->dataset.env.empty()) result["env"] = task->dataset.env;
  if (!request.demand.is_prefetch) prefetches_.taken_over(task->dataset.name);
  if (!request.wants_lease()) co_return result;
  const auto generation = get_count(result, "generation");
  const auto lease = co_await grant(request, *task, generation, granted);
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
asio::awaitable<Result<std::string>> Requests::grant(const StageRequest& request, const Task& task,
                                                     std::uint64_t generation,
                                                     std::vector<std::string>& granted) {
  std::string dataset = task.dataset.name;
  if (request.demand.is_prefetch) {
    std::string holder = request.asker.holder;
    co_return co_await prefetches_.keep(std::move(dataset), generation, request.demand, std::move(holder));
  }
  if (request.job.is_set()) {
    JobClaim claim = claim_of(request, dataset);
    if (generation == 0) views_.use(task, job_leases_.id_for(claim, generation), request.demand);
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
  // At once: the staging may end before the lease is in the catalog.
  if (generation == 0) views_.use(task, id, request.demand);
  activity_.early_leases.insert(id);
  const auto held = co_await leases_.grant(std::move(lease));
  if (!held) co_return fail(held.error());
  co_return id;
}

}  // namespace spark::datasets
