// Requests to stage: each is a job, and shares the tasks of its datasets with all requests for the same.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "daemon/datasets/attempts.hpp"
#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/prefetches.hpp"
#include "daemon/datasets/ready_copies.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/datasets/turns.hpp"
#include "daemon/jobs.hpp"
#include "daemon/live/views.hpp"

namespace spark::datasets {

// Live views of datasets that are staged: begun for requests with `now`, and kept as long as jobs use them.
class KeptViews {
 public:
  KeptViews(const Context& context, Activity& activity, const Catalog& catalog, Leases& leases, Turns& turns,
            Attempts& attempts, live::Views& views)
      : context_(context),
        activity_(activity),
        catalog_(catalog),
        leases_(leases),
        turns_(turns),
        attempts_(attempts),
        views_(views) {}

  // The task's staging gets a viewer, unless it has one or can have none. One that is under way goes on from
  // what it has.
  void want(const TaskPtr& task, const StageRequest& request);
  // The same after has_failed(). False: the next one would not begin either.
  bool replace(const TaskPtr& task, const StageRequest& request);
  // Its view could not be begun, or nothing more arrives in it.
  bool has_failed(const Task& task) const;
  // None: it is not live, at least not yet.
  std::optional<Outcome> outcome(const Task& task, const StageRequest& request) const;
  bool is_live(const Task& task, const StageRequest& request) const;  // it has one, which is no failure
  // A job with this lease got the view of the task, which is copied as it demands as long as it has the
  // lease.
  void use(const Task& task, const std::string& lease, const Demand& demand);
  // A view was begun or has ended, or a lease or request has.
  void changed();
  // Goes on with the views, and the stagings, of jobs that began with an earlier daemon.
  void resume(const std::vector<live::Views::Earlier>& earlier);

 private:
  struct Kept {
    TaskPtr task;
    // By ID of the lease of a job that got the view. "": of the request that began it, until a job has it.
    std::map<std::string, Demand> demands{};
  };
  void add(const TaskPtr& task, const StageRequest& request);
  void begin(Kept view);
  asio::awaitable<void> keep(std::uint64_t number);
  bool is_used(const Kept& view) const;
  void drop_ended(Kept& view);
  asio::awaitable<void> end_staging(std::uint64_t number, json::object copy);
  Kept kept_for(const live::Views::Earlier& one, bool is_newest, const TaskPtr& there);

  const Context& context_;
  Activity& activity_;
  const Catalog& catalog_;
  Leases& leases_;
  Turns& turns_;
  Attempts& attempts_;
  live::Views& views_;
  std::map<std::uint64_t, Kept> kept_{};  // by number
};

class Requests {
 public:
  Requests(const Context& context, Jobs& jobs, Activity& activity, Leases& leases, JobLeases& job_leases,
           Turns& turns, Attempts& attempts, Prefetches& prefetches, const Catalog& catalog,
           live::Views& views)
      : context_(context),
        jobs_(jobs),
        activity_(activity),
        leases_(leases),
        job_leases_(job_leases),
        turns_(turns),
        attempts_(attempts),
        prefetches_(prefetches),
        views_(context, activity, catalog, leases, turns, attempts, views),
        copies_(context, activity, catalog, leases) {}

  Result<std::shared_ptr<Job>> stage(StageRequest request);
  KeptViews& views() { return views_; }

 private:
  Result<std::vector<config::Dataset>> find_all(const StageRequest& request) const;
  TaskPtr join(const config::Dataset& dataset, const StageRequest& request);
  TaskPtr task_of(const config::Dataset& dataset, json::object ready_copy, const StageRequest& request);
  // Of one request: a task is replaced by one that serves a copy as it is, or that stages again.
  using Tasks = std::shared_ptr<std::vector<TaskPtr>>;
  asio::awaitable<void> run(std::shared_ptr<Job> job, Tasks tasks, StageRequest request);
  TaskPtr take_part(const config::Dataset& dataset, const StageRequest& request, std::vector<TaskPtr>& fresh);
  asio::awaitable<void> stage_again(TaskPtr& shared, const StageRequest& request);
  void watch(const std::shared_ptr<Job>& job, const Tasks& tasks, const StageRequest& request);
  asio::awaitable<Outcome> wait_for(std::shared_ptr<Job> job, Tasks tasks, const StageRequest& request,
                                    std::vector<std::string>& granted);
  asio::awaitable<Outcome> newest_outcome_of(std::shared_ptr<Job> job, Tasks tasks, TaskPtr& task,
                                             const StageRequest& request);
  asio::awaitable<Outcome> outcome_of(std::shared_ptr<Job> job, TaskPtr& task, const StageRequest& request);
  asio::awaitable<Outcome> hold_copy(TaskPtr task);
  asio::awaitable<Outcome> result_of(TaskPtr task, json::object result, const StageRequest& request,
                                     std::vector<std::string>& granted);
  asio::awaitable<Result<std::string>> grant(const StageRequest& request, const Task& task,
                                             std::uint64_t generation, std::vector<std::string>& granted);
  std::shared_ptr<Job> join_own(const StageRequest& request, const std::vector<config::Dataset>& wanted);
  JobClaim claim_of(const StageRequest& request, const std::string& dataset) const;
  struct Shared;
  asio::awaitable<void> end_early(std::shared_ptr<const Shared> shared, TaskPtr task);
  bool is_too_late(const Shared& shared, const Task& task) const;
  void end_claims(const StageRequest& request, const std::vector<TaskPtr>& tasks);

  const Context& context_;
  Jobs& jobs_;
  Activity& activity_;
  Leases& leases_;
  JobLeases& job_leases_;
  Turns& turns_;
  Attempts& attempts_;
  Prefetches& prefetches_;
  KeptViews views_;
  ReadyCopies copies_;
  std::map<std::string, std::weak_ptr<Job>> own_;  // by StageRequest::own_key()
};

}  // namespace spark::datasets
