#include "daemon/datasets/task.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/datasets/leases/leases.hpp"

namespace spark::datasets {

void Attempt::note(const json::object& progress, SteadyTime now) {
  has_begun = true;
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const bool copies = get_string(progress, "phase") == "copying";
  if (bytes == last_bytes && copies) return;
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
  if (attempt.worker != 0 && matters && attempt.demand != demand()) begin_again();
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

void Task::show_away(Error why, SteadyTime now) {
  away = std::move(why);
  if (!away_since) away_since = now;
  show_stalled(away->what + "; it begins automatically when that is over");
}

void Task::show_queued() {
  away.reset();
  progress["phase"] = "queued";
  progress.erase("reason");
  changed.notify();
}

tl::unexpected<Error> being_evicted(const std::string& dataset) {
  return fail(Errc::Unavailable, "dataset " + printable(dataset) + " is being evicted", "try again");
}

asio::awaitable<void> end_holds(Leases& leases, std::vector<TaskPtr> tasks) {
  std::vector<std::string> ids;
  for (const TaskPtr& task : tasks) {
    if (task->was_tried) ids.push_back(task->hold);
  }
  co_await leases.end_holds(std::move(ids));
}

}  // namespace spark::datasets
