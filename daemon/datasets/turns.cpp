// Whose turn it is at a source and the drive, and what a running copy has to begin again for.
#include <utility>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/stager.hpp"
#include "daemon/log.hpp"

namespace spark::datasets {
namespace {

constexpr std::size_t kMostCopies = 4;  // at a time: each has a pool of buffers of its own

}  // namespace

// Its source, or what of it belongs to the dataset, is another by now.
bool Stager::is_redefined(const Task& task) const {
  auto now = config::find_dataset(config_(), task.dataset.name);
  if (!now) return true;
  now->env = task.dataset.env;  // only `run` reads it
  return *now != task.dataset;
}

// A volume that is away is waited for, as it would have been had the attempt gone on.
asio::awaitable<void> Stager::wait_to_begin_again(TaskPtr task) {
  if (auto now = config::find_dataset(config_(), task->dataset.name)) task->dataset = std::move(*now);
  const auto source = find_source_(task->dataset);
  if (source || source.error().kind != Errc::Unavailable) co_return;
  std::string reason = source.error().what + "; it goes on by itself when that is over";
  co_await wait_for_source(task, std::move(reason), patience_.look);
}

void Stager::config_changed() {
  set_priorities();
  for (const auto& [name, task] : tasks_) {
    if (task->worker == 0 || !is_redefined(*task)) continue;
    log::info("staging " + printable(name) + " begins again: its configuration has changed");
    task->begin_again();
  }
}

// A worker keeps the limit that it began with. Once all is copied it makes no difference.
void Stager::apply_limit(Task& task) {
  const auto phase = get_string(task.progress, "phase");
  const bool matters = !task.has_begun || phase == "walking" || phase == "copying" || phase == "stalled";
  if (task.worker != 0 && matters && task.limit != task.loosest_limit()) task.begin_again();
}

Slot Stager::slot_for(const Task& task, const SourcePlace& source) const {
  return {source.drive, task.loosest_limit() != 0};
}

bool Stager::must_wait(const Task& task) const {
  const auto source = find_source_(task.dataset);
  return source && (taken_.size() >= kMostCopies || taken_.contains(slot_for(task, *source)));
}

void Stager::take_turn(Task& task, Slot slot) {
  taken_.insert(slot);
  task.slot = std::move(slot);
}

void Stager::give_turn_back(Task& task) {
  if (!task.slot) return;
  taken_.erase(*task.slot);
  task.slot.reset();
  turn_over_.cancel();
}

}  // namespace spark::datasets
