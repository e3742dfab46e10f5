#include "daemon/datasets/turns.hpp"

#include <algorithm>
#include <utility>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

constexpr std::size_t kMostCopies = 4;  // at a time: each has a pool of buffers of its own

bool must_yield(const Context& context, const Activity& activity, const Leases& leases) {
  if (!context.config().cache.yield) return false;
  return std::ranges::any_of(leases.all(),
                             [&](const auto& one) { return !activity.early_leases.contains(one.first); });
}

}  // namespace

bool Turns::is_free(const Slot& slot) const {
  return taken_.size() < kMostCopies && !taken_.contains(slot);
}

void Turns::take(Task& task, Slot slot) {
  taken_.insert(slot);
  task.slot = std::move(slot);
}

void Turns::give_back(Task& task) {
  if (!task.slot) return;
  taken_.erase(*task.slot);
  task.slot.reset();
  wake_all();
}

asio::awaitable<void> Turns::next_change() {
  co_await changed_.async_wait(kToken);
}

void set_priorities(const Context& context, const Activity& activity, const Leases& leases) {
  const auto priority =
      must_yield(context, activity, leases) ? workers::Priority::Idle : workers::Priority::Normal;
  for (const auto& [name, task] : activity.tasks) {
    if (task->attempt.worker == 0) continue;
    if (const auto set = workers::set_priority(task->attempt.worker, priority); !set)
      log::survived(set.error());
  }
}

}  // namespace spark::datasets
