#include "daemon/datasets/task.hpp"

#include "base/text.hpp"
#include "daemon/datasets/leases.hpp"

namespace spark::datasets {

Task::Task(asio::any_io_executor executor, std::uint64_t count, config::Dataset what)
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
      changed(executor, asio::steady_timer::time_point::max()),
      pause(executor) {}

Bytes Task::loosest_limit() const {
  return limits.empty() || limits.contains(0) ? 0 : *limits.rbegin();
}

// The next attempt goes on from what this one copied.
void Task::begin_again() {
  begins_again = true;
  attempt.cancel();
}

void Task::cancel() {
  is_cancelled = true;
  attempt.cancel();
  pause.cancel();
}

void Task::show_stalled(const std::string& reason) {
  progress["phase"] = "stalled";
  progress["reason"] = reason;
  progress["bytes_per_second"] = 0;
  progress["eta_s"] = nullptr;
  changed.cancel();
}

void Task::begin_attempt(SteadyTime now) {
  attempt = {};
  has_begun = has_moved = saw_outage = is_given_up = doubt_passes = false;
  doubt.clear();
  last_bytes = -1;
  last_moved = now;
}

}  // namespace spark::datasets
