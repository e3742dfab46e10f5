#include "daemon/datasets/task.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/model_json.hpp"

namespace spark::datasets {
namespace {

void log_eviction(const Task& task, const json::object& evicted) {
  log::info("dataset " + get_shown(evicted, "name") + " (" + format_bytes(get_count(evicted, "bytes")) +
            ") was evicted to make room for " + printable(task.dataset.name));
}

}  // namespace

void Attempt::note(const json::object& progress, SteadyTime now) {
  has_begun = true;
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const bool copies = get_string(progress, "phase") == "copying";
  if (bytes == last_bytes && copies) return;
  if (copies && first_bytes < 0) first_bytes = bytes;
  // Bytes of an earlier attempt appear immediately and do not count as progress.
  if (copies && last_bytes > 0) has_moved = true;
  last_bytes = bytes;
  last_moved = now;
  saw_outage = false;
}

Task::Task(const asio::any_io_executor& executor, std::uint64_t count, config::Dataset what)
    : number(count),
      hold(new_hold_id()),
      dataset(std::move(what)),
      progress({{"dataset", printable(dataset.name)},
                {"phase", "queued"},
                {"bytes_done", 0},
                {"bytes_total", 0},
                {"files_done", 0},
                {"files_total", 0},
                {"bytes_per_second", 0},
                {"seconds", 0},
                {"eta_s", nullptr},
                {"bottleneck", ""}}),
      changed(executor),
      pause(executor) {}

// Once everything is copied the limit no longer matters.
void Task::apply_demand() {
  const auto phase = get_string(progress, "phase");
  const bool matters = !attempt.has_begun || phase == "walking" || phase == "copying" || phase == "stalled";
  Demand wanted = demand();
  wanted.user = attempt.demand.user;
  if (attempt.worker != 0 && matters && attempt.demand != wanted) begin_again();
}

// The next attempt resumes this one's copy.
void Task::begin_again() {
  attempt.begins_again = true;
  attempt.cancellation.cancel();
}

void Task::cancel() {
  is_cancelled = true;
  attempt.cancellation.cancel();
  pause.cancel();
  changed.notify();
}

tl::unexpected<Error> Task::cancelled() const {
  if (stops) return fail(*stops);
  return fail(Errc::Cancelled, "staging " + printable(dataset.name) + " was cancelled");
}

void Task::show_stalled(const std::string& reason) {
  progress["phase"] = "stalled";
  progress["reason"] = reason;
  progress["bytes_per_second"] = 0;
  progress["eta_s"] = nullptr;
  changed.notify();
}

void Task::note_read(SteadyTime now) {
  read_at = now;
  away.reset();
  away_since.reset();
}

void Task::show_away(Error why, SteadyTime now) {
  away = std::move(why);
  if (!away_since) away_since = now;
  show_stalled(away->what + (read_at ? "; it resumes automatically when that is over"
                                     : "; it begins automatically when that is over"));
}

void Task::show_queued() {
  away.reset();
  away_since.reset();
  progress["phase"] = "queued";
  progress.erase("reason");
  changed.notify();
}

TaskPtr make_task(const asio::any_io_executor& executor, Activity& activity, const config::Dataset& dataset,
                  const StageRequest& request) {
  auto task = std::make_shared<Task>(executor, ++activity.newest_task, dataset);
  task->demands.add(request.demand);
  task->nodes.insert(request.nodes.begin(), request.nodes.end());
  task->accepts_source = request.accepts_source;
  task->allow_dirty = request.allow_dirty;
  activity.tasks[dataset.name] = task;
  activity.failed.erase(dataset.name);
  return task;
}

std::string definition_of(const config::Dataset& dataset) {
  const json::array exclude(dataset.exclude.begin(), dataset.exclude.end());
  json::array definition{json::value(dataset.volume), json::value(dataset.path), exclude,
                         json::value(config::to_string(dataset.links))};
  if (dataset.model) definition.push_back(workers::to_json(*dataset.model));
  return json::serialize(definition);
}

void count(Totals& totals, const Task& task, const Outcome& ended) {
  if (!ended) {
    ++(ended.error().kind == Errc::Cancelled ? totals.cancelled : totals.failed);
    return;
  }
  if (get_string(*ended, "served_from") == "cache") {
    ++totals.from_cache;
  } else {
    const Bytes taken_over = get_count(*ended, "resumed_bytes") + get_count(*ended, "unchanged_bytes");
    ++totals.copied;
    totals.copied_bytes += get_count(*ended, "bytes") - std::min(get_count(*ended, "bytes"), taken_over);
    if (const json::object* from = get_object(*ended, "bytes_from"))
      totals.peer_bytes += get_count(*from, "peers");
    totals.copied_seconds += get_double(*ended, "seconds").value_or(0);
  }
  for (const json::object& one : objects_in(*ended, "evicted")) {
    log_eviction(task, one);
    ++totals.evicted_for_room;
    totals.evicted_for_room_bytes += get_count(one, "bytes");
  }
}

tl::unexpected<Error> being_evicted(const std::string& dataset) {
  return fail(Errc::Unavailable, "dataset " + printable(dataset) + " is being evicted", "try again");
}

asio::awaitable<void> end_holds(Leases& leases, std::vector<TaskPtr> tasks) {
  std::vector<CopyHold> holds;
  for (const TaskPtr& task : tasks) {
    if (task->was_tried) holds.push_back({task->hold, task->dataset.name});
  }
  co_await leases.end_holds(std::move(holds));
}

}  // namespace spark::datasets
