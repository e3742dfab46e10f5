#include "daemon/datasets/stager.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

constexpr std::chrono::seconds kCatalogDeadline{60};
constexpr std::chrono::hours kRecoveryDeadline{1};  // it may delete millions of files

}  // namespace

Stager::Stager(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs, const Clock& clock,
               std::string state_dir, CurrentConfig config, FindSource find_source, IsSettling is_settling,
               Patience patience)
    : executor_(executor),
      runner_(runner),
      jobs_(jobs),
      clock_(clock),
      state_dir_(std::move(state_dir)),
      config_(std::move(config)),
      find_source_(std::move(find_source)),
      is_settling_(std::move(is_settling)),
      patience_(patience),
      leases_(
          executor, runner, clock, [this] { return catalog_request(); }, [this] { set_priorities(); }),
      turn_over_(executor, asio::steady_timer::time_point::max()) {}

json::object Stager::catalog_request() const {
  return {{"cache", workers::to_json(config_().cache, state_dir_)}};
}

asio::awaitable<void> Stager::start() {
  asio::steady_timer timer(executor_);
  for (;;) {
    const auto begun = co_await recover();
    if (begun) break;
    log::warning(begun.error().message());
    if (!is_looked_over_) catalog_ = fail(begun.error());
    timer.expires_after(patience_.recover_again);
    const auto [error] = co_await timer.async_wait(kToken);
    if (error) co_return;
  }
  co_await keep_scrubbing();
}

// Datasets that can't be recovered are listed with the reason; what fails here is opening the cache.
asio::awaitable<Result<>> Stager::recover() {
  // Leases first: no copy is shown or evicted before it is known who holds it.
  if (auto loaded = co_await leases_.load(); !loaded) co_return loaded;
  workers::Call call;
  call.verb = "recover";
  call.subject = "the cache";
  call.request = catalog_request();
  call.deadline = kRecoveryDeadline;
  call.on_progress = [this](const json::object& /*looked_over*/) {
    launch(executor_, "list of the cache", look_over());
  };
  const auto recovered = co_await runner_.run(std::move(call));
  if (!recovered) co_return fail(recovered.error());
  co_await look_over();
  co_return *catalog_ ? Result<>() : fail(catalog_->error());
}

// The catalog is as the disk is: it can be shown.
asio::awaitable<void> Stager::look_over() {
  co_await refresh();
  is_looked_over_ = catalog_ && *catalog_;
}

// The catalog as it is known; Unavailable until it was looked over after the daemon's start.
Result<const json::object*> Stager::known_catalog() const {
  if (catalog_ && !*catalog_) return fail(catalog_->error());
  if (!is_looked_over_)
    return fail(Errc::Unavailable, "the cache is still being opened", "try again in a moment");
  return &**catalog_;
}

asio::awaitable<void> Stager::refresh() {
  json::array in_progress;
  for (const auto& [name, task] : tasks_) {
    if (!task->is_over) in_progress.emplace_back(task->number);
  }
  workers::Call call;
  call.verb = "catalog";
  call.subject = "the cache";
  call.request = catalog_request();
  call.request["in_progress"] = std::move(in_progress);
  call.request["newest"] = newest_task_;
  call.deadline = kCatalogDeadline;
  const std::uint64_t turn = ++refreshes_;
  auto catalog = co_await runner_.run(std::move(call));
  if (turn < catalog_turn_) co_return;  // a later question was answered before: this is the past
  catalog_turn_ = turn;
  catalog_ = std::move(catalog);
  tell_writable();
}

// Once for each reason.
void Stager::tell_writable() {
  const json::object* usage = *catalog_ ? get_object(**catalog_, "usage") : nullptr;
  const std::string why = usage == nullptr ? "" : get_string(*usage, "writable_because").value_or("");
  if (why != writable_because_ && !why.empty()) log::warning("jobs can change the staged copies: " + why);
  if (usage != nullptr) writable_because_ = why;
}

Result<std::shared_ptr<Job>> Stager::stage(StageRequest request) {
  if (request.datasets.empty())
    return fail(Errc::Invalid, "no dataset was named", "name one of the config's datasets");
  std::vector<config::Dataset> wanted;
  for (const std::string& name : request.datasets) {
    auto dataset = config::find_dataset(config_(), name);
    if (!dataset) return dataset.take_error();
    if (evicting_.contains(dataset->name)) {
      return fail(Errc::Unavailable, "dataset " + printable(dataset->name) + " is being evicted",
                  "try again");
    }
    wanted.push_back(std::move(*dataset));
  }

  auto job = jobs_.create("stage", request.datasets);
  std::vector<TaskPtr> tasks, fresh;
  for (const config::Dataset& dataset : wanted) {
    TaskPtr task = join(dataset, request);
    if (!task) fresh.push_back(task = make_task(dataset, request));
    ++task->users;
    wanted_.insert(dataset.name);
    tasks.push_back(std::move(task));
  }
  // Only then: none of the request's datasets makes way for another. One may end before this returns.
  for (const TaskPtr& task : fresh) launch(executor_, "staging " + task->dataset.name, run_task(task));
  job->on_cancel = [job, tasks] {
    job->finish(fail(Errc::Cancelled, "staging was cancelled", "stage again to go on from where it was"));
    for (const TaskPtr& task : tasks) task->changed.cancel();  // wakes the job, which lets go of its tasks
  };
  launch(executor_, "stage job " + std::to_string(job->id()),
         run_stage_job(job, std::move(tasks), std::move(request)));
  return job;
}

// None if there is none to be shared.
TaskPtr Stager::join(const config::Dataset& dataset, const StageRequest& request) {
  const auto running = tasks_.find(dataset.name);
  // One that was cancelled may take its time to die: nobody waits for that.
  if (running == tasks_.end() || running->second->is_cancelled) return nullptr;
  // Nobody gets a doubtful copy who did not ask for one: who shares it, shares the stricter wish.
  running->second->allow_dirty = running->second->allow_dirty && request.allow_dirty;
  running->second->limits.insert(request.max_rate);
  apply_limit(*running->second);
  return running->second;
}

TaskPtr Stager::make_task(const config::Dataset& dataset, const StageRequest& request) {
  auto task = std::make_shared<Task>(executor_, ++newest_task_, dataset);
  task->limits.insert(request.max_rate);
  task->allow_dirty = request.allow_dirty;
  tasks_[dataset.name] = task;
  failed_.erase(dataset.name);
  return task;
}

asio::awaitable<void> Stager::run_stage_job(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                            StageRequest request) {
  std::vector<std::string> granted;
  auto result = co_await wait_for_tasks(job, tasks, request, granted);
  std::vector<TaskPtr> over = let_go(tasks, request.max_rate);
  const auto kept = co_await end_holds(std::move(over));
  if (result && !kept) result = fail(kept.error());
  const bool succeeded = result.has_value() && job->is_running();
  job->finish(std::move(result));
  for (const TaskPtr& task : tasks) wanted_.erase(wanted_.find(task->dataset.name));
  for (const std::string& id : granted) {
    early_leases_.erase(id);
    if (!succeeded) (void)leases_.release(id);  // nobody was told of it; it may have ended already
  }
  set_priorities();
}

// Ends those that no other request needs; gives those of them that have ended already.
std::vector<TaskPtr> Stager::let_go(const std::vector<TaskPtr>& tasks, Bytes max_rate) {
  std::vector<TaskPtr> ended;
  for (const TaskPtr& task : tasks) {
    task->limits.erase(task->limits.find(max_rate));
    if (--task->users > 0) {
      apply_limit(*task);
    } else if (task->ended) {
      ended.push_back(task);
    } else {
      task->cancel();
      turn_over_.cancel();  // it may wait for its turn
    }
  }
  return ended;
}

// A hold that is gone tells that its copy is: then nothing is ready.
asio::awaitable<Result<>> Stager::end_holds(std::vector<TaskPtr> tasks) {
  std::vector<std::string> ids;
  for (const TaskPtr& task : tasks) {
    if (task->was_tried) ids.push_back(task->hold);
  }
  if (ids.empty()) co_return Result<>{};
  const auto missing = co_await leases_.end_holds(std::move(ids));
  if (!missing) log::survived(missing.error());  // what was staged is held until this daemon ends
  for (const TaskPtr& task : tasks) {
    const bool is_staged = task->ended && task->ended->has_value();
    if (!missing || !is_staged || std::ranges::find(*missing, task->hold) == missing->end()) continue;
    co_return fail(Errc::Unavailable,
                   "dataset " + printable(task->dataset.name) + ": its copy is gone again from the cache",
                   "stage it again");
  }
  co_return Result<>{};
}

asio::awaitable<Stager::Outcome> Stager::wait_for_tasks(std::shared_ptr<Job> job,
                                                        const std::vector<TaskPtr>& tasks,
                                                        const StageRequest& request,
                                                        std::vector<std::string>& granted) {
  json::array results;
  for (const TaskPtr& task : tasks) {
    while (!task->ended && job->is_running()) {
      job->set_progress(task->progress);
      co_await task->changed.async_wait(kToken);
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

// The contract's object of `stage --json`, with the lease that was asked for granted at this moment.
asio::awaitable<Stager::Outcome> Stager::result_of(TaskPtr task, const StageRequest& request,
                                                   std::vector<std::string>& granted) {
  json::object result = task->ended->value();
  result["name"] = printable(task->dataset.name);
  result["state"] = "ready";
  if (!request.wants_lease()) co_return result;
  Lease lease;
  lease.dataset = task->dataset.name;
  lease.generation = static_cast<std::uint64_t>(get_int(result, "generation").value_or(0));
  lease.holder = request.holder;
  lease.process = request.process;
  lease.cgroup = request.cgroup;
  if (request.lease) lease.expires = clock_.wall() + *request.lease;
  lease.id = new_lease_id();
  const std::string id = lease.id;
  granted.push_back(id);
  early_leases_.insert(id);
  const auto held = co_await leases_.grant(std::move(lease));
  if (!held) co_return fail_with(held.error(), "staging " + printable(task->dataset.name));
  result["lease"] = id;
  co_return result;
}

}  // namespace spark::datasets
