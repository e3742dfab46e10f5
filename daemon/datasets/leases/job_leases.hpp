// Leases of schedulers' jobs and of volumes of pods. A job holds its datasets from its request on, also while
// they are staged, until its epilog ends its leases. Because an epilog may never run, the leases also end
// when the job has no process left on this host. A volume holds its datasets until spark-stage-csi ends its
// leases, which compares them with the pods.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/jobs.hpp"
#include "daemon/workers/runner.hpp"
#include "staging/leases/scheduler_job.hpp"

namespace spark::datasets {

// A job without a process for this long counts as gone from this host. Longer than a prolog takes, after
// which the job's first process is started.
inline constexpr Duration kJobGone{600'000};

struct JobTimings {
  Duration look{30'000};  // between two checks of jobs' processes
  Duration gone{kJobGone};
};

// A scheduler's job's claim to one dataset.
struct JobClaim {
  staging::SchedulerJob job;
  std::string dataset;
  std::optional<WallTime> expires;  // none means unchanged, or until the job ends
};

class JobLeases {
 public:
  JobLeases(Leases& leases, Jobs& jobs, workers::Runner& runner, const Clock& clock, JobTimings timings)
      : leases_(leases), jobs_(jobs), runner_(runner), clock_(clock), timings_(timings) {}

  // From now on, holds any staged generation of the dataset. A job that claims it again has one lease.
  void claim(const JobClaim& claim);
  // The job's lease is then on the generation that was staged for it; returns the lease's ID. If the job
  // holds an earlier generation, that one is kept too: its processes may have begun to read it.
  asio::awaitable<Result<std::string>> hold(JobClaim claim, std::uint64_t generation);
  std::string id_for(const JobClaim& claim, std::uint64_t generation) const;  // of that lease
  // A request for the dataset has ended. If it was the last one and nothing was granted, the claim ends.
  void settle(const JobClaim& claim);
  // Those on the dataset that an earlier daemon granted for its live view, whose generation is not known yet.
  void keep(const std::string& dataset);

  // Ends all leases of the job and its requests in progress; work that other requests share continues.
  // NotFound if there was neither.
  Result<> end(const std::string& key);  // "slurm:123"

  // By a request in progress: no training runs yet.
  bool is_claimed(const std::string& lease) const { return claims_.contains(lease); }
  // A request got it, even if nothing is staged yet: a job reads the live view.
  bool is_granted(const std::string& lease) const { return granted_.contains(lease); }
  // The user that may end, besides root, the job's leases and requests; empty if unknown, or if the job is a
  // volume. No value if it has no lease.
  std::optional<std::string> user_of(const std::string& key) const;

  asio::awaitable<void> watch();  // runs until the daemon stops

 private:
  asio::awaitable<std::optional<std::set<std::string>>> ask_for_jobs_here();
  void end_those_gone(const std::set<std::string>& slurm_jobs);

  Leases& leases_;
  Jobs& jobs_;
  workers::Runner& runner_;
  const Clock& clock_;
  JobTimings timings_;
  std::multiset<std::string> claims_;       // lease IDs, one for each request in progress
  std::set<std::string> granted_;           // IDs of leases
  std::map<std::string, SteadyTime> seen_;  // by job: time of its last process here, or of its last request
};

}  // namespace spark::datasets
