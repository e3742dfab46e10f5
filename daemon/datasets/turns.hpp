// Decides which copies run: at most one of each speed per source drive, beside those with live views, in
// turns of their users, and at idle priority while a training job holds a lease.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/event.hpp"

namespace spark::datasets {

class Turns {
 public:
  Turns(const Context& context, const Activity& activity, const Leases& leases, const JobLeases& job_leases)
      : context_(context),
        activity_(activity),
        leases_(leases),
        job_leases_(job_leases),
        changed_(context.executor) {}

  bool is_free(const Slot& slot) const;
  void take(Task& task, Slot slot);  // instead of the one it has
  // It has one, and this one would be free without it.
  bool may_go_on(const Task& task, const Slot& slot) const;
  void give_back(Task& task);  // if it has one
  // Copies that yield to others, or would yield.
  bool has_background() const;
  void stop_background();

  asio::awaitable<void> next_change();  // returns when a slot was released, or at wake_all()
  using Wanted = std::function<std::optional<Slot>()>;
  // Waits until the slot that `wanted` returns is free and the task's turn has come, as long as it returns
  // one and the task is not cancelled. Each user has a turn before the second of any; root has the next one,
  // unless it had the last one. What jobs read goes first.
  asio::awaitable<void> wait_for(TaskPtr task, Wanted wanted);
  // Another user's task could go if this slot were given back.
  bool is_waited_for(const Slot& slot) const;
  void wake_all();
  // Ends the demand of a user of the tasks, and cancels those that have no other user. Returns those that
  // have already ended.
  std::vector<TaskPtr> let_go(const std::vector<TaskPtr>& tasks, const Demand& demand);
  // The same for one whose demands have ended.
  std::vector<TaskPtr> leave(const std::vector<TaskPtr>& tasks);

  // Sets workers that copy to idle priority while a lease is in use, if the configuration requires it.
  void set_priorities() const;

  bool must_yield() const;  // a lease is in use, and the configuration requires it

 private:
  const Context& context_;
  const Activity& activity_;
  const Leases& leases_;
  const JobLeases& job_leases_;

  using Taken = std::multiset<Slot>;
  struct Waiting {
    const Task& task;
    const Wanted& wanted;
  };
  bool is_free(const Slot& slot, const Taken& taken) const;
  bool can_go(const Waiting& one) const;
  const Waiting* next();
  std::uint64_t rank(uid_t user) const;  // the lowest goes first

  Taken taken_;
  std::list<const Waiting*> waiting_;          // in the order of their arrival
  unsigned stagings_ = 0;                      // that wait: no background copy starts before them
  std::optional<const Waiting*> next_;         // chosen since the last change
  std::map<uid_t, std::uint64_t> last_turns_;  // by user
  std::uint64_t turns_ = 0;
  Event changed_;
};

}  // namespace spark::datasets
