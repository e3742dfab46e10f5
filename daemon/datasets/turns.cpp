#include "daemon/datasets/turns.hpp"

#include <algorithm>
#include <utility>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

constexpr std::size_t kMostCopies = 4;  // at a time: each has a pool of buffers of its own

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

bool Turns::must_yield() const {
  if (!context_.config().cache.yield) return false;
  return std::ranges::any_of(leases_.all(), [&](const auto& one) {
    return one.second.is_staged() && !activity_.early_leases.contains(one.first) &&
           !job_leases_.is_claimed(one.first);
  });
}

void Turns::set_priorities() const {
  const auto priority = must_yield() ? workers::Priority::Idle : workers::Priority::Normal;
  for (const auto& [name, task] : activity_.tasks) {
    if (task->attempt.worker == 0) continue;
    if (const auto set = workers::set_priority(task->attempt.worker, priority); !set)
      log::survived(set.error());
  }
}

}  // namespace spark::datasets
