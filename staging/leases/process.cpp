#include "staging/leases/process.hpp"

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

// The fields of /proc/PID/stat from the third one on; none if the process has ended.
std::vector<std::string> fields_in(const Result<std::string>& stat) {
  // The second field is the program's name in parentheses, and may contain any character.
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return {};
  std::vector<std::string> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
  if (fields[0] == "Z" || fields[0] == "X") return {};  // ended, not reaped yet
  return fields;
}

std::optional<std::uint64_t> start_time_in(const Result<std::string>& stat) {
  const std::vector<std::string> fields = fields_in(stat);
  constexpr std::size_t kStartTime = 22 - 3;
  return fields.size() <= kStartTime ? std::nullopt : leading_number<std::uint64_t>(fields[kStartTime]);
}

Result<std::string> read_stat(pid_t pid) {
  return read_file("/proc/" + std::to_string(pid) + "/stat");
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
    pid = leading_number<pid_t>(fields_in(stat)[1]).value_or(0);
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
