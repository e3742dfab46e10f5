// Requests to stage: each is a job, and shares the tasks of its datasets with all requests for the same.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/datasets/attempts.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/prefetches.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/datasets/turns.hpp"
#include "daemon/jobs.hpp"

namespace spark::datasets {

struct StageRequest {
  std::vector<std::string> datasets;
  std::optional<std::chrono::seconds> lease;  // lease by time
  staging::ProcessId process;                 // lease by process, identified at the time of the request
  staging::Cgroup cgroup;                     // lease by control group
  staging::SchedulerJob job;                  // lease by a scheduler's job, from now on
  Asker asker;
  Demand demand;                   // rate and priority
  std::vector<std::string> nodes;  // hosts that stage the same: peers, beside the configured ones
  bool accepts_source = false;     // also if it became empty, or is on another file system than before
  bool allow_dirty = false;        // also from a volume that another host writes

  bool wants_lease() const {
    return demand.is_prefetch || lease || process.pid != 0 || !cgroup.path.empty() || job.is_set();
  }
};

class Requests {
 public:
  Requests(const Context& context, Jobs& jobs, Activity& activity, Leases& leases, JobLeases& job_leases,
           Turns& turns, Attempts& attempts, Prefetches& prefetches)
      : context_(context),
        jobs_(jobs),
        activity_(activity),
        leases_(leases),
        job_leases_(job_leases),
        turns_(turns),
        attempts_(attempts),
        prefetches_(prefetches) {}

  Result<std::shared_ptr<Job>> stage(StageRequest request);

 private:
  Result<std::vector<config::Dataset>> find_all(const StageRequest& request) const;
  TaskPtr join(const config::Dataset& dataset, const StageRequest& request);
  TaskPtr make_task(const config::Dataset& dataset, const StageRequest& request);
  asio::awaitable<void> run(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks, StageRequest request);
  TaskPtr take_part(const config::Dataset& dataset, const StageRequest& request, std::vector<TaskPtr>& fresh);
  void stage_without(TaskPtr& refused, const StageRequest& request);
  asio::awaitable<Outcome> wait_for(std::shared_ptr<Job> job, std::vector<TaskPtr>& tasks,
                                    const StageRequest& request, std::vector<std::string>& granted);
  asio::awaitable<Outcome> result_of(TaskPtr task, const StageRequest& request,
                                     std::vector<std::string>& granted);
  asio::awaitable<Result<std::string>> grant(const StageRequest& request, std::string dataset,
                                             std::uint64_t generation, std::vector<std::string>& granted);
  JobClaim claim_of(const StageRequest& request, const std::string& dataset) const;
  std::vector<TaskPtr> let_go(const std::vector<TaskPtr>& tasks, const Demand& demand);
  asio::awaitable<void> end_with(std::shared_ptr<Job> job, TaskPtr task, std::vector<TaskPtr> all);
  void end_claims(const StageRequest& request, const std::vector<TaskPtr>& tasks);

  const Context& context_;
  Jobs& jobs_;
  Activity& activity_;
  Leases& leases_;
  JobLeases& job_leases_;
  Turns& turns_;
  Attempts& attempts_;
  Prefetches& prefetches_;
};

}  // namespace spark::datasets
