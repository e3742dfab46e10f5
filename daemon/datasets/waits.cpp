#include "daemon/datasets/waits.hpp"

#include "daemon/config/parse.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {

asio::awaitable<void> pause_for(TaskPtr task, Duration time) {
  task->pause.expires_after(time);
  co_await task->pause.wait();
}

std::string goes_on_when_over(const Error& why) {
  return why.what + "; it resumes automatically when that is over";
}

asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task) {
  while (!task->is_cancelled && context.is_settling(task->dataset))
    co_await pause_for(task, context.timings.settling);
}

asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, std::string reason,
                                      SteadyTime end) {
  task->show_stalled(reason);
  while (!task->is_cancelled) {
    const auto source = context.find_source(task->dataset);
    if (source || source.error().kind == Errc::NotFound) break;
    task->show_stalled(goes_on_when_over(source.error()));
    if (context.clock.steady() >= end) co_return;
    co_await pause_for(task, context.timings.look);
  }
  task->show_queued();
}

asio::awaitable<void> wait_to_begin(const Context& context, TaskPtr task, Error why) {
  do {
    task->show_away(std::move(why), context.clock.steady());
    co_await pause_for(task, context.timings.look);
    if (auto now = config::find_dataset(context.config(), task->dataset.name))
      task->dataset = std::move(*now);
    const auto source = context.find_source(task->dataset);
    if (source || source.error().kind != Errc::Unavailable) break;
    why = source.error();
  } while (!task->is_cancelled);
  if (!task->is_cancelled) task->show_queued();
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

asio::awaitable<void> wait_to_begin_again(const Context& context, TaskPtr task) {
  if (auto now = config::find_dataset(context.config(), task->dataset.name)) task->dataset = std::move(*now);
  const auto source = context.find_source(task->dataset);
  if (source || source.error().kind != Errc::Unavailable) co_return;
  std::string reason = goes_on_when_over(source.error());
  task->show_stalled(reason);
  co_await pause_for(task, context.timings.look);
  co_await wait_for_source(context, task, std::move(reason));
}

bool is_redefined(const Context& context, const Task& task) {
  auto now = config::find_dataset(context.config(), task.dataset.name);
  if (!now) return true;
  now->env = task.dataset.env;                // only the results have it
  now->offline = task.dataset.offline;        // decided for each request
  now->namespaces = task.dataset.namespaces;  // only spark-stage-csi reads it
  return *now != task.dataset;
}

}  // namespace spark::datasets
