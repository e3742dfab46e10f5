#include "daemon/datasets/requests.hpp"

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {

namespace {

// The job owns this function, and outlives it.
void wake_on_cancel(Job& job, const std::vector<TaskPtr>& tasks) {
  job.on_cancel = [owner = &job, tasks] {
    owner->finish(fail(Errc::Cancelled, "staging was cancelled", "stage again to go on from where it was"));
    for (const TaskPtr& task : tasks) task->changed.notify();  // wakes the job, which releases its tasks
  };
}

// The shared staging was for requests that do not accept what the source has become.
bool is_refused_for_others(const Task& task, const StageRequest& request) {
  return request.accepts_source && !task.accepts_source && task.ended && !*task.ended &&
         task.ended->error().kind == Errc::Refused;
}

}  // namespace

Result<std::vector<config::Dataset>> Requests::find_all(const StageRequest& request) const {
  if (request.datasets.empty())
    return fail(Errc::Invalid, "no dataset was named", "name one of the config's datasets");
  std::vector<config::Dataset> found;
  for (const std::string& name : request.datasets) {
    auto dataset = config::find_dataset(context_.config(), name);
    if (!dataset) return dataset.take_error();
    if (activity_.evicting.contains(dataset->name)) {
      return fail(Errc::Unavailable, "dataset " + printable(dataset->name) + " is being evicted",
                  "try again");
    }
    found.push_back(std::move(*dataset));
  }
  return found;
}

Result<std::shared_ptr<Job>> Requests::stage(StageRequest request) {
  const auto wanted = find_all(request);
  if (!wanted) return fail(wanted.error());
  const std::string verb = request.demand.is_prefetch ? kPrefetch : kStage;
  auto job = jobs_.create({verb, request.datasets, request.asker});
  std::vector<TaskPtr> tasks, fresh;
  for (const config::Dataset& dataset : *wanted) {
    TaskPtr task = take_part(dataset, request, fresh);
    activity_.wanted.insert(dataset.name);
    if (request.job.is_set()) job_leases_.claim(claim_of(request, dataset.name));
    tasks.push_back(std::move(task));
  }
  // Only now, so that none of the request's datasets is evicted for another. A task may end before this
  // returns.
  for (const TaskPtr& task : fresh)
    launch(context_.executor, "staging " + task->dataset.name, attempts_.run(task));
  wake_on_cancel(*job, tasks);
  // A prefetch of several datasets reports the first one without space immediately, not after the others were
  // copied.
  for (const TaskPtr& task : tasks) {
    if (request.demand.is_prefetch)
      launch(context_.executor, "prefetch job " + std::to_string(job->id()), end_with(job, task, tasks));
  }
  launch(context_.executor, verb + " job " + std::to_string(job->id()),
         run(job, std::move(tasks), std::move(request)));
  return job;
}

TaskPtr Requests::take_part(const config::Dataset& dataset, const StageRequest& request,
                            std::vector<TaskPtr>& fresh) {
  TaskPtr task = join(dataset, request);
  if (!task) fresh.push_back(task = make_task(dataset, request));
  ++task->users;
  return task;
}

// Replaces a staging that was refused for other requests.
void Requests::stage_without(TaskPtr& refused, const StageRequest& request) {
  (void)let_go({refused}, request.demand);  // it holds nothing
  std::vector<TaskPtr> fresh;
  const config::Dataset dataset = refused->dataset;
  refused = take_part(dataset, request, fresh);
  for (const TaskPtr& task : fresh)
    launch(context_.executor, "staging " + task->dataset.name, attempts_.run(task));
}

// None if no task can be shared.
TaskPtr Requests::join(const config::Dataset& dataset, const StageRequest& request) {
  const auto running = activity_.tasks.find(dataset.name);
  // A cancelled worker may take long to exit: a new request gets a new task.
  if (running == activity_.tasks.end() || running->second->is_cancelled) return nullptr;
  // A doubtful copy is only for requests that allow it; requests that share a task share the stricter
  // setting.
  running->second->allow_dirty = running->second->allow_dirty && request.allow_dirty;
  running->second->demands.add(request.demand);
  running->second->nodes.insert(request.nodes.begin(), request.nodes.end());
  running->second->apply_demand();
  turns_.wake_all();  // it may wait in another turn
  turns_.set_priorities();
  return running->second;
}

TaskPtr Requests::make_task(const config::Dataset& dataset, const StageRequest& request) {
  auto task = std::make_shared<Task>(context_.executor, ++activity_.newest_task, dataset);
  task->demands.add(request.demand);
  task->nodes.insert(request.nodes.begin(), request.nodes.end());
  task->accepts_source = request.accepts_source;
  task->allow_dirty = request.allow_dirty;
  activity_.tasks[dataset.name] = task;
  activity_.failed.erase(dataset.name);
  return task;
}

asio::awaitable<void> Requests::run(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                    StageRequest request) {
  std::vector<std::string> granted;
  auto result = co_await wait_for(job, tasks, request, granted);
  std::vector<TaskPtr> over = let_go(tasks, request.demand);
  const auto kept = co_await end_holds(leases_, std::move(over));
  if (result && !kept) result = fail(kept.error());
  const bool succeeded = result.has_value() && job->is_running();
  job->finish(std::move(result));
  end_claims(request, tasks);
  for (const std::string& id : granted) {
    activity_.early_leases.erase(id);
    if (!succeeded) (void)leases_.release(id);  // no caller has its ID; it may have expired already
  }
  turns_.set_priorities();
}

void Requests::end_claims(const StageRequest& request, const std::vector<TaskPtr>& tasks) {
  for (const TaskPtr& task : tasks) {
    activity_.wanted.erase(activity_.wanted.find(task->dataset.name));
    if (request.job.is_set()) job_leases_.settle(claim_of(request, task->dataset.name));
  }
}

// Releases the tasks that no other request needs; returns those that have already ended.
std::vector<TaskPtr> Requests::let_go(const std::vector<TaskPtr>& tasks, const Demand& demand) {
  std::vector<TaskPtr> ended;
  for (const TaskPtr& task : tasks) {
    task->demands.remove(demand);
    if (--task->users > 0) {
      task->apply_demand();
    } else if (task->ended) {
      ended.push_back(task);
    } else {
      task->cancel();
      turns_.wake_all();  // it may wait for its turn
    }
  }
  return ended;
}

asio::awaitable<void> Requests::end_with(std::shared_ptr<Job> job, TaskPtr task, std::vector<TaskPtr> all) {
  while (!task->ended && job->is_running()) co_await task->changed.wait();
  if (!job->is_running() || task->ended->has_value()) co_return;
  job->finish(fail(task->ended->error()));
  for (const TaskPtr& one : all) one->changed.notify();  // wakes the job, which releases its tasks
}

asio::awaitable<Outcome> Requests::wait_for(std::shared_ptr<Job> job, std::vector<TaskPtr>& tasks,
                                            const StageRequest& request, std::vector<std::string>& granted) {
  json::array results;
  for (TaskPtr& task : tasks) {
    while (!task->ended && job->is_running()) {
      job->set_progress(task->progress);
      co_await task->changed.wait();
      if (!job->is_running() || !is_refused_for_others(*task, request)) continue;
      stage_without(task, request);
      wake_on_cancel(*job, tasks);
    }
    if (!job->is_running()) co_return fail(Errc::Cancelled, "the job was cancelled");
    if (!*task->ended) co_return fail(task->ended->error());
    auto result = co_await result_of(task, request, granted);
    if (!result) co_return result;
    results.push_back(std::move(*result));
  }
  if (!job->is_running()) co_return fail(Errc::Cancelled, "the job was cancelled");
  json::object all{{"datasets", std::move(results)}};
  co_return all;
}

// The object of `stage --json` as specified in the API, with the requested lease, which is granted here.
asio::awaitable<Outcome> Requests::result_of(TaskPtr task, const StageRequest& request,
                                             std::vector<std::string>& granted) {
  json::object result = task->ended->value();
  result["name"] = printable(task->dataset.name);
  result["state"] = "ready";
  result.erase("reserved");  // internal to the daemon and its worker
  result.erase("blocked_by");
  result.erase("held");
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
