// A process that holds something, and whether it still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace spark::staging {

// A process, told apart from a later one with the same id. No process (pid 0) never ends.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

bool is_running(const ProcessId& process);

// Field 22 of /proc/PID/stat; none if there is no such process any more.
std::optional<std::uint64_t> process_start_time(pid_t pid);
ProcessId process_with(pid_t pid);

}  // namespace spark::staging
