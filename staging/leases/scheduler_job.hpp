// A scheduler's job, or a volume of a Kubernetes pod, as the holder of leases. This host is asked whether the
// job still runs here, not the scheduler: its controller may be away.
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
// A volume of a pod. It has no process of its own: it ends when spark-stage-csi releases it.
inline constexpr std::string_view kCsi = "csi";

struct SchedulerJob {
  std::string system;                // "slurm" or "csi"; empty: no job
  std::string id;                    // of a volume: its ID
  std::string user;                  // for people; empty: not told. Of a volume: its pod, "team-a/train-0"
  std::vector<ProcessId> processes;  // that belong to it, beside those that the scheduler itself started
  std::string boot;                  // the host's boot that it runs in: no job survives a reboot

  bool is_set() const { return !system.empty(); }
  bool has_processes() const { return system == kSlurm; }  // and ends with them
  std::string key() const { return system + ":" + id; }    // "slurm:123"
};

// An id becomes part of a lease's id, of paths in URLs and of sentences. Of a job: digits, letters, `_`, `+`
// and `.`, at most 64. Of a volume: `-` too, at most 128.
Result<> check_job_id(std::string_view system, std::string_view id);

std::string in_words(const SchedulerJob& job);  // "slurm job 123 (alice)", "pod team-a/train-0"

// A new one at every boot; empty if it can't be read.
std::string boot_id(const SystemRoot& root);

// The ids of Slurm's jobs that have a process on this host: each step of a job has a slurmstepd, whose
// command line is "slurmstepd: [JOB.STEP]". An error if the processes can't be listed. Looks at other
// processes' memory, which may block: workers only.
Result<std::set<std::string>> slurm_jobs_here(const SystemRoot& root);

}  // namespace spark::staging
