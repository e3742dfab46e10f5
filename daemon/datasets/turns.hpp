// Which copies run: at most one of each speed per source drive, and at idle priority while a training job
// holds a lease.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <set>

#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

class Turns {
 public:
  Turns(const Context& context, const Activity& activity, const Leases& leases, const JobLeases& job_leases)
      : context_(context),
        activity_(activity),
        leases_(leases),
        job_leases_(job_leases),
        changed_(context.executor, asio::steady_timer::time_point::max()) {}

  bool is_free(const Slot& slot) const;
  void take(Task& task, Slot slot);
  void give_back(Task& task);  // if it has one
  // Copies that give way, or would do so.
  bool has_background() const;
  void stop_background();

  asio::awaitable<void> next_change();  // ends when a slot was given back, or at wake_all()
  // Until it need not wait any more, or is cancelled.
  asio::awaitable<void> wait_while(TaskPtr task, std::function<bool()> must_wait);
  void wake_all() { changed_.cancel(); }

  // Workers that copy run at idle priority while a lease is in use, if the configuration wants that.
  void set_priorities() const;

  bool must_yield() const;  // while a lease is in use, if the configuration wants that

 private:
  const Context& context_;
  const Activity& activity_;
  const Leases& leases_;
  const JobLeases& job_leases_;
  std::size_t taken_by(bool prefetches) const;

  std::multiset<Slot> taken_;
  unsigned waiting_ = 0;        // stagings: no copy in the background begins before them
  asio::steady_timer changed_;  // never expires
};

}  // namespace spark::datasets
