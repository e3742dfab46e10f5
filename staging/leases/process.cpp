#include "staging/leases/process.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include "base/kernel/process_stat.hpp"

namespace spark::staging {
namespace {

Result<ProcessStat> read_stat(pid_t pid) {
  return read_process_stat(SystemRoot{}, std::to_string(pid));
}

// None if the process has ended.
std::optional<std::uint64_t> start_time_in(const Result<ProcessStat>& stat) {
  if (!stat || stat->fields[0] == "Z" || stat->fields[0] == "X") return std::nullopt;  // not reaped yet
  return stat->field<std::uint64_t>(22);
}

// Any other failure is inconclusive.
bool has_ended(const Error& error) {
  return error.number == ENOENT || error.number == ESRCH;
}

}  // namespace

std::optional<std::uint64_t> process_start_time(pid_t pid) {
  return start_time_in(read_stat(pid));
}

ProcessId process_with(pid_t pid) {
  return {pid, process_start_time(pid).value_or(0)};
}

std::vector<ProcessId> lineage_of(pid_t pid) {
  constexpr std::size_t kMost = 1000;  // against parents that change meanwhile
  std::vector<ProcessId> lineage;
  while (pid > 1 && lineage.size() < kMost) {
    const auto stat = read_stat(pid);
    const auto start_time = start_time_in(stat);
    if (!start_time) break;
    lineage.push_back({pid, *start_time});
    pid = stat->field<pid_t>(4).value_or(0);
  }
  return lineage;
}

bool is_running(const ProcessId& process) {
  if (process.pid == 0) return true;
  const auto stat = read_stat(process.pid);
  if (!stat) return !has_ended(stat.error());
  return start_time_in(stat) == process.start_time;
}

}  // namespace spark::staging
