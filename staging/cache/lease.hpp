// Who needs a generation of a dataset kept, and how long.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::staging {

// A process, told apart from a later one with the same id. No process (pid 0) never ends.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // field 22 of /proc/PID/stat
};

// A control group (version 2), told apart from a later one with the same name.
struct Cgroup {
  std::filesystem::path path;  // its folder below /sys/fs/cgroup; empty: none
  std::uint64_t id = 0;        // of the folder: the kernel gives each once
};

// Ends with its process, its control group or its time, whichever comes first; the daemon removes it then.
struct Lease {
  std::string id;
  std::string dataset;
  std::uint64_t generation = 0;
  std::string holder;  // for people: "pid 4711 (python)", "slurm job 12"
  ProcessId process;
  Cgroup cgroup;
  std::optional<WallTime> expires;  // none: with its holder
};

// Whether it still holds. A holder that can't be asked about, for lack of memory or descriptors, lives.
bool is_live(const Lease& lease, WallTime now);

bool is_running(const ProcessId& process);
// Whether processes are in it or below it.
bool is_populated(const Cgroup& cgroup);

// Field 22 of /proc/PID/stat; none if there is no such process any more.
std::optional<std::uint64_t> process_start_time(pid_t pid);
ProcessId process_with(pid_t pid);

// The control group that the process is in. Unsupported where there is no version 2; Invalid for the root
// group, which never ends.
Result<Cgroup> cgroup_of(const SystemRoot& root, pid_t pid);

}  // namespace spark::staging
