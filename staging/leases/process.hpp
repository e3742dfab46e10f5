// A process that holds a lease or a reservation, and whether it still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace spark::staging {

// A process. The start time distinguishes it from a later one with the same ID. "No process" (pid 0) never
// ends.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

bool is_running(const ProcessId& process);

// Field 22 of /proc/PID/stat; none if the process no longer exists.
std::optional<std::uint64_t> process_start_time(pid_t pid);
ProcessId process_with(pid_t pid);
// The process, its parent and so on, as far as they exist; without the first process of the host.
std::vector<ProcessId> lineage_of(pid_t pid);

}  // namespace spark::staging
