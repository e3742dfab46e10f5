// The holders of a dataset's generation, and how long each holds it.
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

// A control group (version 2). The ID distinguishes it from a later one with the same name.
struct Cgroup {
  std::filesystem::path path;  // its folder below /sys/fs/cgroup; empty means none
  std::uint64_t id = 0;        // of the folder: the kernel never reuses it
};

// Ends with its process, its control group, its job or its time, whichever comes first; then the daemon
// removes it.
struct Lease {
  std::string id;
  std::string dataset;
  std::uint64_t generation = 0;  // 0: the lease of a job that waits for the dataset
  std::string holder;            // for messages: "pid 4711 (python)", "slurm job 12"
  ProcessId process;
  Cgroup cgroup;
  SchedulerJob job;                 // or a volume of a pod
  std::optional<WallTime> expires;  // none means that it ends with its holder
  bool is_soft = false;             // of a prefetch: it yields to a staging that needs the space

  bool is_staged() const { return generation != 0; }
};

// Whether the holder still exists. It counts as existing if it can't be checked for lack of memory or
// descriptors. So does a scheduler's job of the current boot, which the daemon watches.
bool is_live(const Lease& lease, WallTime now);

inline constexpr std::string_view kJobLease = "job:";  // prefix of the ID of a job's lease

// The ID of a job's lease on a dataset, always the same: "job:slurm:123:imagenet". It differs for each
// dataset.
std::string job_lease_id(const SchedulerJob& job, const std::string& dataset);
// The ID of the lease that keeps a prefetched dataset: "prefetch:imagenet".
std::string prefetch_lease_id(const std::string& dataset);

// Whether the control group or one below it has processes.
bool is_populated(const Cgroup& cgroup);

// The control group of the process. Unsupported if there is no version 2; Invalid for the root group, which
// never ends.
Result<Cgroup> cgroup_of(const SystemRoot& root, pid_t pid);

}  // namespace spark::staging
