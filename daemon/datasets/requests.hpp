// Requests to stage: each is a job, and shares the tasks of its datasets with all requests for the same.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
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

namespace spark::datasets {

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
        views_(views),
        copies_(context, activity, catalog, leases) {}

  Result<std::shared_ptr<Job>> stage(StageRequest request);
  // A view was begun or has ended, or a lease has.
  void view_changed();
  // Goes on with the view, and the staging, of a job that began with an earlier daemon.
  void resume_view(const std::string& dataset, bool is_published);

 private:
  Result<std::vector<config::Dataset>> find_all(const StageRequest& request) const;
  TaskPtr join(const config::Dataset& dataset, const StageRequest& request);
  TaskPtr make_task(const config::Dataset& dataset, const StageRequest& request);
  TaskPtr task_of(const config::Dataset& dataset, json::object ready_copy, const StageRequest& request);
  // Of one request: a task is replaced by one that serves a copy as it is, or that stages again.
  using Tasks = std::shared_ptr<std::vector<TaskPtr>>;
  asio::awaitable<void> run(std::shared_ptr<Job> job, Tasks tasks, StageRequest request);
  TaskPtr take_part(const config::Dataset& dataset, const StageRequest& request, std::vector<TaskPtr>& fresh);
  asio::awaitable<void> stage_again(TaskPtr& shared, const StageRequest& request);
  void watch(const std::shared_ptr<Job>& job, const Tasks& tasks, const StageRequest& request);
  asio::awaitable<Outcome> wait_for(std::shared_ptr<Job> job, Tasks tasks, const StageRequest& request,
                                    std::vector<std::string>& granted);
  asio::awaitable<Outcome> outcome_of(std::shared_ptr<Job> job, TaskPtr& task, const StageRequest& request);
  asio::awaitable<Outcome> hold_copy(TaskPtr task);
  asio::awaitable<Outcome> result_of(TaskPtr task, json::object result, const StageRequest& request,
                                     std::vector<std::string>& granted);
  asio::awaitable<Result<std::string>> grant(const StageRequest& request, std::string dataset,
                                             std::uint64_t generation, std::vector<std::string>& granted);
  std::shared_ptr<Job> join_own(const StageRequest& request, const std::vector<config::Dataset>& wanted);
  JobClaim claim_of(const StageRequest& request, const std::string& dataset) const;
  std::vector<TaskPtr> let_go(const std::vector<TaskPtr>& tasks, const Demand& demand);
  struct Shared;
  asio::awaitable<void> end_early(std::shared_ptr<const Shared> shared, TaskPtr task);
  bool is_too_late(const Shared& shared, const Task& task) const;
  void want_view(const TaskPtr& task, const StageRequest& request);
  asio::awaitable<void> keep_view(TaskPtr task, Demand demand, bool is_published);
  std::optional<Outcome> live_outcome(const TaskPtr& task, const StageRequest& request) const;
  void end_claims(const StageRequest& request, const std::vector<TaskPtr>& tasks);

  const Context& context_;
  Jobs& jobs_;
  Activity& activity_;
  Leases& leases_;
  JobLeases& job_leases_;
  Turns& turns_;
  Attempts& attempts_;
  Prefetches& prefetches_;
  live::Views& views_;
  std::map<std::string, TaskPtr> kept_views_{};  // by dataset, see keep_view()
  ReadyCopies copies_;
  std::map<std::string, std::weak_ptr<Job>> own_;  // by StageRequest::own_key()
};

}  // namespace spark::datasets
