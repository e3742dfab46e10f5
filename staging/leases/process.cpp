#include "staging/leases/process.hpp"

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

// Parses the content of /proc/PID/stat.
std::optional<std::uint64_t> start_time_in(const Result<std::string>& stat) {
  // The second field is the program's name in parentheses, and may contain any character.
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // the first field after the name is field 3
  if (fields.size() <= kStartTime) return std::nullopt;
  if (fields[0] == "Z" || fields[0] == "X") return std::nullopt;  // ended, not reaped yet
  const std::string& field = fields[kStartTime];
  std::uint64_t ticks = 0;
  if (std::from_chars(field.data(), field.data() + field.size(), ticks).ec != std::errc{})
    return std::nullopt;
  return ticks;
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

bool is_running(const ProcessId& process) {
  if (process.pid == 0) return true;
  const auto stat = read_stat(process.pid);
  if (!stat) return !has_ended(stat.error());
  return start_time_in(stat) == process.start_time;
}

}  // namespace spark::staging
