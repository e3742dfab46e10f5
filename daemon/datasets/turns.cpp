#include "daemon/datasets/turns.hpp"

#include <algorithm>
#include <utility>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

// Concurrent copies: each has its own pool of buffers.
constexpr std::size_t kMostCopies = 4, kMostPrefetches = 4;

bool is_prefetch(const Slot& slot) {
  return slot.kind == SlotKind::Deadline || slot.kind == SlotKind::Background;
}

}  // namespace

std::size_t Turns::taken_by(bool prefetches) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(taken_, [&](const Slot& slot) { return is_prefetch(slot) == prefetches; }));
}

bool Turns::is_free(const Slot& slot) const {
  switch (slot.kind) {
    case SlotKind::Deadline:
      return taken_by(true) < kMostPrefetches;
    case SlotKind::Background:
      return waiting_ == 0 && taken_by(false) == 0 && !has_background();
    default:
      return taken_by(false) < kMostCopies && !taken_.contains(slot);
  }
}

bool Turns::has_background() const {
  return std::ranges::any_of(taken_, [](const Slot& slot) { return slot.kind == SlotKind::Background; });
}

// They resume once nothing else is copied.
void Turns::stop_background() {
  for (const auto& [name, task] : activity_.tasks) {
    if (task->slot && task->slot->kind == SlotKind::Background && !task->attempt.begins_again)
      task->begin_again();
  }
}

void Turns::take(Task& task, Slot slot) {
  if (!is_prefetch(slot)) stop_background();
  taken_.insert(slot);
  task.slot = std::move(slot);
}

void Turns::give_back(Task& task) {
  if (!task.slot) return;
  taken_.erase(taken_.find(*task.slot));
  task.slot.reset();
  wake_all();
}

asio::awaitable<void> Turns::wait_while(TaskPtr task, std::function<bool()> must_wait) {
  if (!must_wait()) co_return;
  const bool goes_first = !task->demand().is_prefetch;
  if (goes_first) ++waiting_;
  while (must_wait() && !task->is_cancelled) co_await next_change();
  if (goes_first) --waiting_;
  wake_all();  // it may end without having had its turn
}

asio::awaitable<void> Turns::next_change() {
  co_await changed_.wait();
}

bool Turns::must_yield() const {
  if (!context_.config().cache.yield) return false;
  return std::ranges::any_of(leases_.all(), [&](const auto& one) {
    return one.second.is_staged() && !one.second.is_soft && !activity_.early_leases.contains(one.first) &&
           !job_leases_.is_claimed(one.first);
  });
}

void Turns::set_priorities() const {
  const auto stagings = must_yield() ? workers::Priority::Idle : workers::Priority::Normal;
  for (const auto& [name, task] : activity_.tasks) {
    if (task->attempt.worker == 0) continue;
    const auto priority = task->demand().is_prefetch ? workers::Priority::Background : stagings;
    if (const auto set = workers::set_priority(task->attempt.worker, priority); !set)
      log::survived(set.error());
  }
}

}  // namespace spark::datasets
