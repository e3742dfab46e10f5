// A scheduler's job as the holder of leases. This host is asked whether the job still runs here, not the
// scheduler: its controller may be away.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/leases/process.hpp"

namespace spark::staging {

inline constexpr std::string_view kSlurm = "slurm";

struct SchedulerJob {
  std::string system;  // "slurm"; empty: no job
  std::string id;
  std::string user;                  // for people; empty: not told
  std::vector<ProcessId> processes;  // that belong to it, beside those that the scheduler itself started
  std::string boot;                  // the host's boot that it runs in: no job survives a reboot

  bool is_set() const { return !system.empty(); }
  std::string key() const { return system + ":" + id; }  // "slurm:123"
};

// Digits, letters, `_`, `+` and `.`, at most 64: an id becomes part of a lease's id, of paths in URLs and of
// sentences.
Result<> check_job_id(std::string_view id);

std::string in_words(const SchedulerJob& job);  // "slurm job 123 (alice)"

// A new one at every boot; empty if it can't be read.
std::string boot_id(const SystemRoot& root);

// The ids of Slurm's jobs that have a process on this host: each step of a job has a slurmstepd, whose
// command line is "slurmstepd: [JOB.STEP]". An error if the processes can't be listed. Looks at other
// processes' memory, which may block: workers only.
Result<std::set<std::string>> slurm_jobs_here(const SystemRoot& root);

}  // namespace spark::staging
