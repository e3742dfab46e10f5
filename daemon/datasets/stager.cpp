#include "daemon/datasets/stager.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
// A copy that moved no byte for so long is called stalled: longer than any healthy flush or reconnect delay.
constexpr std::chrono::seconds kStalledAfter{10};
constexpr std::chrono::seconds kCatalogDeadline{60};

}  // namespace

Stager::Stager(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs, const Clock& clock,
               std::string state_dir, CurrentConfig config, FindSource find_source)
    : executor_(executor),
      runner_(runner),
      jobs_(jobs),
      clock_(clock),
      state_dir_(std::move(state_dir)),
      config_(std::move(config)),
      find_source_(std::move(find_source)),
      leases_(executor, runner, clock, [this] { return catalog_request(); }),
      turn_over_(executor, asio::steady_timer::time_point::max()) {}

json::object Stager::catalog_request() const {
  return {{"cache", workers::to_json(config_().cache, state_dir_)}};
}

asio::awaitable<void> Stager::start() {
  co_await refresh();
  if (!*catalog_) {
    log::warning(catalog_->error().message());
    co_return;
  }
  const auto loaded = co_await leases_.load();
  if (!loaded) log::survived(loaded.error());
}

asio::awaitable<void> Stager::refresh() {
  workers::Call call;
  call.verb = "catalog";
  call.subject = "the cache";
  call.request = catalog_request();
  call.deadline = kCatalogDeadline;
  catalog_ = co_await runner_.run(std::move(call));
}

Result<std::shared_ptr<Job>> Stager::stage(StageRequest request) {
  if (request.datasets.empty())
    return fail(Errc::Invalid, "no dataset was named", "name one of the config's datasets");
  std::vector<config::Dataset> wanted;
  for (const std::string& name : request.datasets) {
    auto dataset = config::find_dataset(config_(), name);
    if (!dataset) return tl::unexpected<Error>(std::move(dataset.error()));
    if (evicting_.contains(dataset->name)) {
      return fail(Errc::Unavailable, "dataset " + printable(dataset->name) + " is being evicted",
                  "try again");
    }
    wanted.push_back(std::move(*dataset));
  }

  auto job = jobs_.create("stage", request.datasets);
  std::vector<TaskPtr> tasks;
  for (const config::Dataset& dataset : wanted) {
    tasks.push_back(join_or_start(dataset));
    ++tasks.back()->users;
    wanted_.insert(dataset.name);
  }
  job->on_cancel = [job, tasks] {
    job->finish(fail(Errc::Cancelled, "staging was cancelled", "stage again to go on from where it was"));
    for (const TaskPtr& task : tasks) task->changed.cancel();  // wakes the job, which lets go of its tasks
  };
  asio::co_spawn(executor_, run_stage_job(job, std::move(tasks), std::move(request)), asio::detached);
  return job;
}

Stager::TaskPtr Stager::join_or_start(const config::Dataset& dataset) {
  if (const auto running = tasks_.find(dataset.name); running != tasks_.end()) return running->second;
  json::object queued{{"dataset", printable(dataset.name)},
                      {"phase", "queued"},
                      {"bytes_done", 0},
                      {"bytes_total", 0},
                      {"files_done", 0},
                      {"files_total", 0},
                      {"bytes_per_second", 0},
                      {"seconds", 0}};
  auto task = std::make_shared<Task>(executor_, dataset, std::move(queued));
  tasks_[dataset.name] = task;
  failed_.erase(dataset.name);
  // It may run, and end, before this returns.
  asio::co_spawn(executor_, run_task(task), asio::detached);
  return task;
}

asio::awaitable<void> Stager::run_task(TaskPtr task) {
  auto ended = co_await copy_in_turn(task);
  tasks_.erase(task->dataset.name);
  if (!ended && ended.error().kind != Errc::Cancelled) failed_[task->dataset.name] = ended.error().message();
  task->ended = std::move(ended);
  task->changed.cancel();
}

asio::awaitable<Result<json::object>> Stager::copy_in_turn(TaskPtr task) {
  while (copying_) co_await turn_over_.async_wait(kToken);
  const auto source = find_source_(task->dataset);
  if (!source) co_return fail_with(source.error(), "staging " + printable(task->dataset.name));

  copying_ = true;
  json::array exclude;
  for (const std::string& pattern : task->dataset.exclude) exclude.emplace_back(pattern);
  workers::Call call;
  call.verb = "stage";
  call.subject = "dataset " + printable(task->dataset.name);
  call.request = catalog_request();
  call.request["dataset"] = task->dataset.name;
  call.request["path"] = source->path;
  call.request["mount"] = source->mount;
  call.request["exclude"] = std::move(exclude);
  call.on_progress = [this, task](const json::object& progress) { note_progress(*task, progress); };
  auto copied = co_await runner_.run(std::move(call), task->cancellation);
  copying_ = false;
  turn_over_.cancel();
  co_await refresh();
  co_return copied;
}

void Stager::note_progress(Task& task, const json::object& progress) {
  task.progress = progress;
  task.progress["dataset"] = printable(task.dataset.name);
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const auto phase = get_string(progress, "phase").value_or("");
  if (bytes != task.last_bytes || phase != "copying") {
    task.last_bytes = bytes;
    task.last_moved = clock_.steady();
  } else if (clock_.steady() - task.last_moved > kStalledAfter) {
    task.progress["phase"] = "stalled";
  }
  task.changed.cancel();
}

asio::awaitable<void> Stager::run_stage_job(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                            StageRequest request) {
  auto result = co_await wait_for_tasks(job, tasks, std::move(request));
  job->finish(std::move(result));
  for (const TaskPtr& task : tasks) {
    wanted_.erase(wanted_.find(task->dataset.name));
    if (--task->users == 0 && !task->ended) task->cancellation.cancel();
  }
}

asio::awaitable<Result<json::object>> Stager::wait_for_tasks(std::shared_ptr<Job> job,
                                                             std::vector<TaskPtr> tasks,
                                                             StageRequest request) {
  json::array results;
  for (const TaskPtr& task : tasks) {
    while (!task->ended && job->is_running()) {
      job->set_progress(task->progress);
      co_await task->changed.async_wait(kToken);
    }
    if (!job->is_running()) co_return fail(Errc::Cancelled, "the job was cancelled");
    if (!*task->ended) co_return tl::unexpected<Error>(task->ended->error());
    results.push_back(result_of(*task, request));
  }
  json::object all{{"datasets", std::move(results)}};
  co_return all;
}

// The contract's object of `stage --json`, with the lease that was asked for granted at this moment.
json::object Stager::result_of(const Task& task, const StageRequest& request) {
  json::object result = task.ended->value();
  result["name"] = printable(task.dataset.name);
  result["state"] = "ready";
  if (request.lease || request.holder_pid != 0) {
    const auto generation = static_cast<std::uint64_t>(get_int(result, "generation").value_or(0));
    result["lease"] =
        leases_.grant(task.dataset.name, generation, request.holder, request.holder_pid, request.lease);
  }
  return result;
}

Result<> Stager::check_known(const std::string& dataset) const {
  if (!catalog_) return fail(Errc::Unavailable, "the cache is still being opened", "try again in a moment");
  if (!*catalog_) return tl::unexpected<Error>(catalog_->error());
  for (const json::value& row : *get_array(**catalog_, "datasets")) {
    if (get_string(row.as_object(), "name") == dataset) return {};
  }
  return fail(Errc::NotFound, "dataset " + printable(dataset) + " is not staged",
              "`spark-stage ls` shows what is");
}

Result<std::shared_ptr<Job>> Stager::verify(const std::string& dataset) {
  if (auto known = check_known(dataset); !known) return tl::unexpected<Error>(std::move(known.error()));
  auto job = jobs_.create("verify", {dataset});
  workers::Cancellation cancellation;
  job->on_cancel = [cancellation]() mutable { cancellation.cancel(); };
  asio::co_spawn(executor_, run_verify(job, dataset, cancellation), asio::detached);
  return job;
}

asio::awaitable<void> Stager::run_verify(std::shared_ptr<Job> job, std::string dataset,
                                         workers::Cancellation cancellation) {
  workers::Call call;
  call.verb = "verify";
  call.subject = "dataset " + printable(dataset);
  call.request = catalog_request();
  call.request["dataset"] = dataset;
  call.on_progress = [job, name = printable(dataset)](const json::object& progress) {
    json::object named = progress;
    named["dataset"] = name;
    job->set_progress(std::move(named));
  };
  auto verified = co_await runner_.run(std::move(call), cancellation);
  co_await refresh();  // a copy that was found damaged is not ready any more
  job->finish(std::move(verified));
}

Result<std::shared_ptr<Job>> Stager::evict(const std::string& dataset) {
  if (auto known = check_known(dataset); !known) return tl::unexpected<Error>(std::move(known.error()));
  if (wanted_.contains(dataset) || tasks_.contains(dataset)) {
    return fail(Errc::Refused, "dataset " + printable(dataset) + " is being staged",
                "wait for it, or cancel it");
  }
  if (const auto held = leases_.of(dataset); !held.empty()) {
    return fail(Errc::Refused,
                "dataset " + printable(dataset) + " is leased by " + printable(held.front()->holder) +
                    " (lease " + held.front()->id + ")",
                "wait for its end, or `spark-stage release " + held.front()->id + "`");
  }
  auto job = jobs_.create("evict", {dataset});
  evicting_.insert(dataset);
  asio::co_spawn(executor_, run_evict(job, dataset), asio::detached);
  return job;
}

asio::awaitable<void> Stager::run_evict(std::shared_ptr<Job> job, std::string dataset) {
  workers::Call call;
  call.verb = "evict";
  call.subject = "dataset " + printable(dataset);
  call.request = catalog_request();
  call.request["dataset"] = dataset;
  auto evicted = co_await runner_.run(std::move(call));
  co_await refresh();
  evicting_.erase(dataset);
  job->finish(std::move(evicted));
}

}  // namespace spark::datasets
