// Who needs a generation of a dataset kept, and how long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/leases/process.hpp"
#include "staging/leases/scheduler_job.hpp"

namespace spark::staging {

// A control group (version 2), told apart from a later one with the same name.
struct Cgroup {
  std::filesystem::path path;  // its folder below /sys/fs/cgroup; empty: none
  std::uint64_t id = 0;        // of the folder: the kernel gives each once
};

// Ends with its process, its control group, its job or its time, whichever comes first; the daemon removes it
// then.
struct Lease {
  std::string id;
  std::string dataset;
  std::uint64_t generation = 0;  // 0: of a job that waits for the dataset
  std::string holder;            // for people: "pid 4711 (python)", "slurm job 12"
  ProcessId process;
  Cgroup cgroup;
  SchedulerJob job;                 // or a volume of a pod
  std::optional<WallTime> expires;  // none: with its holder
  bool is_soft = false;             // of a prefetch: makes way for a staging that needs the room

  bool is_staged() const { return generation != 0; }
};

// Whether it still holds. A holder that can't be asked about, for lack of memory or descriptors, lives; so
// does a scheduler's job of this boot, which the daemon looks after.
bool is_live(const Lease& lease, WallTime now);

inline constexpr std::string_view kJobLease = "job:";  // that the id of a job's lease begins with

// The id of a job's lease on a dataset, always the same: "job:slurm:123:imagenet". No two datasets have one.
std::string job_lease_id(const SchedulerJob& job, const std::string& dataset);
// The id of the lease that a prefetched dataset is kept by: "prefetch:imagenet".
std::string prefetch_lease_id(const std::string& dataset);

// Whether processes are in it or below it.
bool is_populated(const Cgroup& cgroup);

// The control group that the process is in. Unsupported where there is no version 2; Invalid for the root
// group, which never ends.
Result<Cgroup> cgroup_of(const SystemRoot& root, pid_t pid);

}  // namespace spark::staging
