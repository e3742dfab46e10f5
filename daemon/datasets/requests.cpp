#include "daemon/datasets/requests.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"

namespace spark::datasets {

namespace {

// The job owns this function, and outlives it.
void wake_on_cancel(Job& job, const std::shared_ptr<std::vector<TaskPtr>>& tasks) {
  job.on_cancel = [owner = &job, tasks] {
    owner->finish(fail(Errc::Cancelled, "staging was cancelled", "stage again to go on from where it was"));
    for (const TaskPtr& task : *tasks) {
      if (!task->is_cancelled) task->stops.reset();
      task->changed.notify();  // wakes the job, which releases its tasks
    }
  };
}

}  // namespace

// What the coroutines of one request share.
struct Requests::Shared {
  std::shared_ptr<Job> job;
  Tasks tasks;
  StageRequest request;
  SteadyTime begin;
};

Result<std::vector<config::Dataset>> Requests::find_all(const StageRequest& request) const {
  if (request.datasets.empty())
    return fail(Errc::Invalid, "no dataset was named", "name one of the config's datasets");
  std::vector<config::Dataset> found;
  for (const std::string& name : request.datasets) {
    auto dataset = config::find_dataset(context_.config(), name);
    if (!dataset && request.generation == 0) return dataset.take_error();
    if (!dataset) {
      dataset = config::Dataset{};
      dataset->name = name;
    }
    found.push_back(std::move(*dataset));
  }
  return found;
}

Result<std::shared_ptr<Job>> Requests::stage(StageRequest request) {
  const auto wanted = find_all(request);
  if (!wanted) return fail(wanted.error());
  for (std::size_t i = 0; i < wanted->size(); ++i)  // a folder of a volume has many names
    if (request.now_only.contains(request.datasets[i])) request.now_only.insert((*wanted)[i].name);
  std::optional<json::object> mounted;
  if (request.generation != 0) {
    auto copy = copies_.find_mounted(request);
    if (!copy) return copy.take_error();
    mounted = std::move(*copy);
  }
  if (auto own = join_own(request, *wanted)) return own;
  request.number = ++activity_.requests;
  request.demand.user = request.asker.uid;
  const std::string verb = request.demand.is_prefetch ? kPrefetch : kStage;
  auto job = jobs_.create({verb, request.datasets, request.asker});
  const auto tasks = std::make_shared<std::vector<TaskPtr>>();
  std::vector<TaskPtr> fresh;
  for (const config::Dataset& dataset : *wanted) {
    auto copy = mounted ? mounted : copies_.find(request, dataset);
    activity_.wanted.insert(dataset.name);
    if (request.is_now(dataset.name)) activity_.wanted_now.insert(dataset.name);
    TaskPtr task = copy ? task_of(dataset, std::move(*copy), request) : take_part(dataset, request, fresh);
    if (request.job.is_set()) job_leases_.claim(claim_of(request, dataset.name));
    tasks->push_back(std::move(task));
  }
  // The job begins when these are complete and the others can be read: they have the drive's first turns.
  std::stable_partition(fresh.begin(), fresh.end(),
                        [&](const TaskPtr& task) { return !request.is_now(task->dataset.name); });
  // Only now, so that none of the request's datasets is evicted for another. A task may end before this
  // returns.
  for (const TaskPtr& task : fresh)
    launch(context_.executor, "staging " + task->dataset.name, attempts_.run(task));
  if (const std::string key = request.own_key(); !key.empty()) own_[key] = job;
  watch(job, tasks, request);
  launch(context_.executor, verb + " job " + std::to_string(job->id()), run(job, tasks, std::move(request)));
  return job;
}

TaskPtr Requests::take_part(const config::Dataset& dataset, const StageRequest& request,
                            std::vector<TaskPtr>& fresh) {
  TaskPtr task = join(dataset, request);
  if (!task) fresh.push_back(task = make_task(context_.executor, activity_, dataset, request));
  ++task->users;
  if (request.is_now(dataset.name)) views_.want(task, request);
  return task;
}

// Replaces a staging that was for other requests.
asio::awaitable<void> Requests::stage_again(TaskPtr& shared, const StageRequest& request) {
  std::vector<TaskPtr> fresh;
  std::vector<TaskPtr> over = turns_.let_go({shared}, request.demand);
  // At once: the others that it was too old for share the next one, which may end before those holds.
  shared = take_part(shared->dataset, request, fresh);
  co_await end_holds(leases_, std::move(over));
  for (const TaskPtr& task : fresh)
    launch(context_.executor, "staging " + task->dataset.name, attempts_.run(task));
}

void Requests::watch(const std::shared_ptr<Job>& job, const Tasks& tasks, const StageRequest& request) {
  if (!job->is_running()) return;
  wake_on_cancel(*job, tasks);
  if (!request.wait && !request.demand.is_prefetch) return;
  const auto shared = std::make_shared<const Shared>(Shared{job, tasks, request, context_.clock.steady()});
  for (const TaskPtr& task : *tasks)
    launch(context_.executor, job->verb() + " job " + std::to_string(job->id()), end_early(shared, task));
}

// A job of a scheduler has one job here for the same data, however often its tasks, and hooks that lost the
// answer, ask for it. Each adds its processes to the lease. So have all prefetches of hooks.
std::shared_ptr<Job> Requests::join_own(const StageRequest& request,
                                        const std::vector<config::Dataset>& wanted) {
  const auto found = own_.find(request.own_key());
  auto job = found == own_.end() ? nullptr : found->second.lock();
  if (!job || !job->is_running()) return nullptr;
  for (const config::Dataset& dataset : wanted) {
    if (!request.job.is_set()) break;
    job_leases_.claim(claim_of(request, dataset.name));
    job_leases_.settle(claim_of(request, dataset.name));
  }
  return job;
}

// None if no task can be shared.
TaskPtr Requests::join(const config::Dataset& dataset, const StageRequest& request) {
  const auto running = activity_.tasks.find(dataset.name);
  // A cancelled worker may take long to exit: a new request gets a new task.
  if (running == activity_.tasks.end() || running->second->is_cancelled) return nullptr;
  if (running->second->is_over && running->second->attempt.requests < request.number) return nullptr;
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

// Is shared with no other request.
TaskPtr Requests::task_of(const config::Dataset& dataset, json::object ready_copy,
                          const StageRequest& request) {
  auto task = std::make_shared<Task>(context_.executor, ++activity_.newest_task, dataset);
  task->demands.add(request.demand);
  task->users = 1;
  task->is_over = task->is_copy = true;
  task->ended = std::move(ready_copy);
  count(activity_.totals, *task, *task->ended);
  return task;
}

asio::awaitable<void> Requests::run(std::shared_ptr<Job> job, Tasks tasks, StageRequest request) {
  std::vector<std::string> granted;
  auto result = co_await wait_for(job, tasks, request, granted);
  const bool succeeded = result.has_value() && job->is_running();
  job->finish(std::move(result));
  std::vector<TaskPtr> over = turns_.let_go(*tasks, request.demand);
  if (const auto own = own_.find(request.own_key()); own != own_.end() && own->second.lock() == job)
    own_.erase(own);
  end_claims(request, *tasks);
  for (const std::string& id : granted) {
    activity_.early_leases.erase(id);
    if (!succeeded) (void)leases_.release(id);  // no caller has its ID; it may have expired already
  }
  turns_.set_priorities();
  views_.changed();
  co_await end_holds(leases_, std::move(over));  // now: else a copy may be gone when its path is printed
}

void Requests::end_claims(const StageRequest& request, const std::vector<TaskPtr>& tasks) {
  for (const TaskPtr& task : tasks) {
    const std::string& name = task->dataset.name;
    activity_.wanted.erase(activity_.wanted.find(name));
    if (request.is_now(name)) activity_.wanted_now.erase(activity_.wanted_now.find(name));
    if (request.job.is_set()) job_leases_.settle(claim_of(request, task->dataset.name));
  }
}

// A prefetch of several datasets reports the first one without space immediately, not after the others were
// copied. A request that does not wait reports a source that is away; the task goes on for others.
asio::awaitable<void> Requests::end_early(std::shared_ptr<const Shared> shared, TaskPtr task) {
  Job& job = *shared->job;
  while (!task->ended && job.is_running() && !is_too_late(*shared, *task)) co_await task->changed.wait();
  const bool is_replaced = std::ranges::find(*shared->tasks, task) == shared->tasks->end();
  if (!job.is_running() || is_replaced) co_return;
  const StageRequest& request = shared->request;
  if (!task->ended) {
    Error why = copies_.with_hint(*task->away, request, task->dataset);
    why.what = "staging " + printable(task->dataset.name) + ": " + why.what;
    task->stops = why;  // if this was the last request for it
    job.finish(fail(std::move(why)));
  } else if (request.demand.is_prefetch && !*task->ended) {
    job.finish(fail(task->ended->error()));
  }
  if (job.is_running()) co_return;
  for (const TaskPtr& one : *shared->tasks) one->changed.notify();  // wakes the job, which releases its tasks
}

// Its source is away for longer than the request waits, and nothing stands in for it. A copy that was under
// way since the request goes on later.
bool Requests::is_too_late(const Shared& shared, const Task& task) const {
  if (!task.away || !shared.request.wait) return false;
  if (task.read_at && *task.read_at >= shared.begin) return false;
  const SteadyTime begin = std::max(shared.begin, task.away_since.value_or(shared.begin));
  return context_.clock.steady() - begin >= *shared.request.wait &&
         !copies_.may_serve(shared.request, task.dataset);
}

}  // namespace spark::datasets
