// Decides which copies run: at most one of each speed per source drive, and at idle priority while a training
// job holds a lease.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <set>

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
  void take(Task& task, Slot slot);
  void give_back(Task& task);  // if it has one
  // Copies that yield to others, or would yield.
  bool has_background() const;
  void stop_background();

  asio::awaitable<void> next_change();  // returns when a slot was released, or at wake_all()
  // Waits while `must_wait` returns true and the task is not cancelled.
  asio::awaitable<void> wait_while(TaskPtr task, std::function<bool()> must_wait);
  void wake_all() { changed_.notify(); }

  // Sets workers that copy to idle priority while a lease is in use, if the configuration requires it.
  void set_priorities() const;

  bool must_yield() const;  // a lease is in use, and the configuration requires it

 private:
  const Context& context_;
  const Activity& activity_;
  const Leases& leases_;
  const JobLeases& job_leases_;
  std::size_t taken_by(bool prefetches) const;

  std::multiset<Slot> taken_;
  unsigned waiting_ = 0;  // stagings: no background copy starts before them
  Event changed_;
};

}  // namespace spark::datasets
