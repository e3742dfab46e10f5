// Stages one dataset until it is ready or has failed: waiting for its turn, retries while its source fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <string>

#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/prefetches.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/datasets/turns.hpp"
#include "daemon/live/views.hpp"
#include "daemon/workers/concurrency_limiter.hpp"

namespace spark::datasets {

class Attempts {
 public:
  Attempts(const Context& context, Activity& activity, Catalog& catalog, Leases& leases, Turns& turns,
           Prefetches& prefetches, live::Views& views)
      : context_(context),
        activity_(activity),
        catalog_(catalog),
        leases_(leases),
        turns_(turns),
        prefetches_(prefetches),
        views_(views) {}

  // Runs the task to its end and records the result.
  asio::awaitable<void> run(TaskPtr task);
  // The live views of an earlier daemon are known. No task runs before.
  void may_begin();
  // A running task has a view no more, or is found to have none: its copy is one of its drive's again.
  void renew_slot(Task& task);

  // Restarts the tasks with a different source, or a different part of it, in the new configuration.
  void config_changed();

 private:
  asio::awaitable<Outcome> stage_to_the_end(TaskPtr task);
  asio::awaitable<std::optional<Outcome>> wait_after(TaskPtr task, Error why, Duration pause);
  asio::awaitable<Outcome> attempt_in_turn(TaskPtr task);
  asio::awaitable<Outcome> attempt(TaskPtr task, bool only_cached);
  bool can_ask_peers(const Task& task) const;
  asio::awaitable<Outcome> attempt_from_peers(TaskPtr task);
  workers::Call call_to_stage(const TaskPtr& task, const SourcePlace& source, bool only_cached);
  void note_progress(Task& task, std::uint64_t view, const json::object& progress);
  json::array in_use() const;
  bool looks_first(const Task& task) const;
  bool can_be_read(const Task& task) const;
  bool must_wait(const Task& task) const;
  bool may_go_on(const Task& task) const;
  bool is_live(const Task& task) const;
  Slot slot_for(const Task& task, const SourcePlace& source) const;
  bool must_yield(const Task& task, SteadyTime now) const;

  const Context& context_;
  Activity& activity_;
  Catalog& catalog_;
  Leases& leases_;
  Turns& turns_;
  Prefetches& prefetches_;
  live::Views& views_;
  bool may_begin_ = false;
  // By source drive: one that does not answer delays looks at no other.
  std::map<std::string, workers::ConcurrencyLimiter> looks_;
};

}  // namespace spark::datasets
