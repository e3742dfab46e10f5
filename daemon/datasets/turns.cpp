#include "daemon/datasets/turns.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

// Concurrent copies: each has its own pool of buffers. Root has as many in addition.
constexpr std::size_t kMostCopies = 4, kMostWithOthers = 6;

bool is_prefetch(const Slot& slot) {
  return slot.kind == SlotKind::Deadline || slot.kind == SlotKind::Background;
}

// Users who have none get in while another one has all of the usual places, and what jobs read stays.
bool has_place(const Slot& slot, const std::multiset<Slot>& taken) {
  std::size_t own = 0, all = 0;
  for (const Slot& other : taken) {
    if (is_prefetch(other) != is_prefetch(slot) || (other.user == 0) != (slot.user == 0)) continue;
    ++all;
    if (other.user == slot.user) ++own;
  }
  const bool gets_in = own == 0 || (slot.is_read && own < kMostCopies);
  return all < (gets_in ? kMostWithOthers : kMostCopies);
}

// Root's copies wait for no user's, and none waits for a live one: a job needs several, and those of other
// jobs may follow without end.
bool shares_drive(const Slot& slot, const std::multiset<Slot>& taken) {
  return !slot.is_read && std::ranges::any_of(taken, [&](const Slot& other) {
    if (other.is_live || other.drive != slot.drive || other.kind != slot.kind) return false;
    return other.user == slot.user || (slot.kind == SlotKind::Full && slot.user != 0);
  });
}

}  // namespace

bool Turns::is_free(const Slot& slot, const Taken& taken) const {
  const auto has_any = [&](auto matches) { return std::ranges::any_of(taken, matches); };
  switch (slot.kind) {
    case SlotKind::Deadline:
      return has_place(slot, taken);
    case SlotKind::Background:
      return stagings_ == 0 && !has_any([](const Slot& other) {
               return !is_prefetch(other) || other.kind == SlotKind::Background;
             });
    default:
      return has_place(slot, taken) && !shares_drive(slot, taken);
  }
}

bool Turns::is_free(const Slot& slot) const {
  return is_free(slot, taken_);
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
  const bool had_one = task.slot.has_value();
  if (had_one) taken_.erase(taken_.find(*task.slot));
  taken_.insert(slot);
  task.slot = std::move(slot);
  if (!is_prefetch(*task.slot)) stop_background();
  if (had_one) wake_all();
}

bool Turns::may_go_on(const Task& task, const Slot& slot) const {
  if (!task.slot) return false;
  Taken others = taken_;
  others.erase(others.find(*task.slot));
  return is_free(slot, others);
}

void Turns::give_back(Task& task) {
  if (!task.slot) return;
  taken_.erase(taken_.find(*task.slot));
  task.slot.reset();
  wake_all();
}

bool Turns::can_go(const Waiting& one) const {
  const auto slot = one.wanted();
  return !slot || is_free(*slot);
}

std::uint64_t Turns::rank(uid_t user) const {
  const auto found = last_turns_.find(user);
  const std::uint64_t last = found == last_turns_.end() ? 0 : found->second;
  const bool was_last = last != 0 && last == turns_;
  return user == 0 && !was_last ? 0 : last + 1;
}

const Turns::Waiting* Turns::next() {
  if (next_) return *next_;
  std::vector<std::pair<std::uint64_t, const Waiting*>> ranked;
  for (const Waiting* one : waiting_) {
    const uid_t user = one->task.demand().user;
    const auto slot = one->wanted();
    const bool is_read = slot && slot->is_read;
    if (!one->task.is_cancelled) ranked.emplace_back(is_read ? 0 : 1 + rank(user), one);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  const auto first = std::ranges::find_if(ranked, [&](const auto& one) { return can_go(*one.second); });
  next_ = first == ranked.end() ? nullptr : first->second;
  return *next_;
}

asio::awaitable<void> Turns::wait_for(TaskPtr task, Wanted wanted) {
  const Waiting self{*task, wanted};
  const bool goes_now = can_go(self);
  if (!goes_now || !waiting_.empty()) {
    const bool goes_first = !task->demand().is_prefetch;
    if (goes_first) ++stagings_;
    waiting_.push_back(&self);
    if (goes_now) wake_all();
    while (!task->is_cancelled && next() != &self) co_await next_change();
    waiting_.remove(&self);
    if (goes_first) --stagings_;
    wake_all();  // it may end without having had its turn
  }
  if (!task->is_cancelled) last_turns_[task->demand().user] = ++turns_;
}

bool Turns::is_waited_for(const Slot& slot) const {
  Taken others = taken_;
  others.erase(others.find(slot));
  return std::ranges::any_of(waiting_, [&](const Waiting* one) {
    if (one->task.is_cancelled || one->task.demand().user == slot.user) return false;
    const auto wanted = one->wanted();
    return wanted && !is_free(*wanted) && is_free(*wanted, others);
  });
}

void Turns::wake_all() {
  next_.reset();
  changed_.notify();
}

asio::awaitable<void> Turns::next_change() {
  co_await changed_.wait();
}

std::vector<TaskPtr> Turns::let_go(const std::vector<TaskPtr>& tasks, const Demand& demand) {
  for (const TaskPtr& task : tasks) task->demands.remove(demand);
  return leave(tasks);
}

std::vector<TaskPtr> Turns::leave(const std::vector<TaskPtr>& tasks) {
  std::vector<TaskPtr> ended;
  for (const TaskPtr& task : tasks) {
    if (--task->users > 0) {
      task->apply_demand();
    } else if (task->ended) {
      ended.push_back(task);
    } else {
      task->cancel();
      wake_all();  // it may wait for its turn
    }
  }
  return ended;
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
    const auto priority = task->demand().is_prefetch ? workers::Priority::Background
                          : task->view.is_possible() ? workers::Priority::Normal  // a job waits for it
                                                     : stagings;
    if (const auto set = workers::set_priority(task->attempt.worker, priority); !set)
      log::survived(set.error());
  }
}

}  // namespace spark::datasets
