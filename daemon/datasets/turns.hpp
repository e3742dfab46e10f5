// Which copies run: at most one of each speed per source drive, and at idle priority while a training job
// holds a lease.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>

#include "daemon/datasets/activity.hpp"
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

  asio::awaitable<void> next_change();  // ends when a slot was given back, or at wake_all()
  void wake_all() { changed_.cancel(); }

  // Workers that copy run at idle priority while a lease is in use, if the configuration wants that.
  void set_priorities() const;

 private:
  bool must_yield() const;

  const Context& context_;
  const Activity& activity_;
  const Leases& leases_;
  const JobLeases& job_leases_;
  std::set<Slot> taken_;
  asio::steady_timer changed_;  // never expires
};

}  // namespace spark::datasets
