// A scheduler's job, or a volume of a Kubernetes pod, as the holder of leases. Whether the job still runs is
// checked on this host, not with the scheduler, because its controller may be down.
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
// A volume of a pod. It has no process: it ends when spark-stage-csi releases it.
inline constexpr std::string_view kCsi = "csi";

struct SchedulerJob {
  std::string system;  // "slurm" or "csi"; empty means no job
  std::string id;      // for a volume: the volume's ID
  std::string user;    // for messages; empty means unknown. For a volume: its pod, "team-a/train-0"
  std::vector<ProcessId> processes;  // additional processes of the job, not started by the scheduler itself
  std::string boot;                  // ID of the host's boot during which it runs: no job survives a reboot

  bool is_set() const { return !system.empty(); }
  bool has_processes() const { return system == kSlurm; }  // and ends with them
  std::string key() const { return system + ":" + id; }    // "slurm:123"
};

// An ID becomes part of a lease's ID, of paths in URLs and of messages. For a job: digits, letters, `_`, `+`
// and `.`, at most 64. For a volume: also `-`, at most 128.
Result<> check_job_id(std::string_view system, std::string_view id);

std::string in_words(const SchedulerJob& job);  // "slurm job 123 (alice)", "pod team-a/train-0"

// The IDs of Slurm jobs that have a process on this host: each step of a job has a slurmstepd with the
// command line "slurmstepd: [JOB.STEP]". An error if the processes can't be listed. Reads other processes'
// memory, which may block: workers only.
Result<std::set<std::string>> slurm_jobs_here(const SystemRoot& root);

}  // namespace spark::staging
