#include "daemon/datasets/task.hpp"

#include <utility>

#include "daemon/config/parse.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {

asio::awaitable<void> pause_for(TaskPtr task, Duration time) {
  task->pause.expires_after(time);
  co_await task->pause.wait();
}

asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task) {
  while (!task->is_cancelled && context.is_settling(task->dataset))
    co_await pause_for(task, context.timings.settling);
}

asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, Error why, Duration pause,
                                      SteadyTime end) {
  while (!task->is_cancelled) {
    task->show_away(std::move(why), context.clock.steady());
    co_await pause_for(task, std::exchange(pause, context.timings.look));
    auto now = config::find_dataset(context.config(), task->dataset.name);
    if (!now) co_return;
    task->dataset = std::move(*now);
    const auto source = context.find_source(task->dataset);
    if (source || source.error().kind != Errc::Unavailable || context.clock.steady() >= end) co_return;
    why = source.error();
  }
}

// A new state was published; the volume remounts once the last process has closed its files on the old one.
asio::awaitable<bool> doubt_passed(const Context& context, TaskPtr task) {
  const Doubt doubt = *task->attempt.doubt;
  if (!doubt.passes) co_return false;
  task->show_stalled("volume " + task->dataset.volume + " is " + doubt.reason);
  const SteadyTime end = context.clock.steady() + context.timings.doubt;
  while (!task->is_cancelled && context.clock.steady() < end) {
    const auto source = context.find_source(task->dataset);
    if (source && !source->doubt) co_return true;
    if (source && !source->doubt->passes) co_return false;
    co_await pause_for(task, context.timings.settling);
  }
  co_return task->is_cancelled;
}

bool is_redefined(const Context& context, const Task& task) {
  const auto now = config::find_dataset(context.config(), task.dataset.name);
  return !now || now->peers != task.dataset.peers || definition_of(*now) != definition_of(task.dataset);
}

}  // namespace spark::datasets
