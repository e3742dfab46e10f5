// Leases of schedulers' jobs and of volumes of pods. A job holds its datasets from its request on, also while
// they are staged, until its epilog ends its leases, or until nothing of it is left on this host: an epilog
// may never run. A volume holds them until spark-stage-csi ends its leases, which compares them with the
// pods.
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

// Without a process for that long a job is gone from this host. Longer than a prolog takes, after which the
// job's first process is started.
inline constexpr Duration kJobGone{600'000};

struct JobTimings {
  Duration look{30'000};  // between two looks at the processes of jobs
  Duration gone{kJobGone};
};

// What a scheduler's job asks of one dataset.
struct JobClaim {
  staging::SchedulerJob job;
  std::string dataset;
  std::optional<WallTime> expires;  // none: as it was, or with the job
};

class JobLeases {
 public:
  JobLeases(Leases& leases, Jobs& jobs, workers::Runner& runner, const Clock& clock, JobTimings timings)
      : leases_(leases), jobs_(jobs), runner_(runner), clock_(clock), timings_(timings) {}

  // Holds whatever is staged of the dataset from now on. A job that claims it again has one lease.
  void claim(const JobClaim& claim);
  // The generation that was staged for the job is what it holds; gives the lease's id. A job that holds an
  // earlier generation keeps that one too: its processes may have begun to read it.
  asio::awaitable<Result<std::string>> hold(JobClaim claim, std::uint64_t generation);
  // A request for the dataset has ended. Without another one, and with nothing staged, nothing is held.
  void settle(const JobClaim& claim);

  // Ends all leases of the job and its requests that are under way; what others wait for goes on. NotFound:
  // there was neither.
  Result<> end(const std::string& key);  // "slurm:123"

  // Of requests that are under way: no training runs yet.
  bool is_claimed(const std::string& lease) const { return claims_.contains(lease); }
  // Who may end its leases and requests, beside root: the user of the job; empty: not told, or the job is a
  // volume. No value: it has no lease.
  std::optional<std::string> user_of(const std::string& key) const;

  asio::awaitable<void> watch();  // until the daemon stops

 private:
  asio::awaitable<std::optional<std::set<std::string>>> ask_for_jobs_here();
  void end_those_gone(const std::set<std::string>& slurm_jobs);

  Leases& leases_;
  Jobs& jobs_;
  workers::Runner& runner_;
  const Clock& clock_;
  JobTimings timings_;
  std::multiset<std::string> claims_;       // ids of leases, one for each request that is under way
  std::map<std::string, SteadyTime> seen_;  // by job: when it last had a process here, or asked
};

}  // namespace spark::datasets
