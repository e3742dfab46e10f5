#include <charconv>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/catalog.hpp"

namespace spark::staging {

std::optional<std::uint64_t> process_start_time(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  // The second field is the program's name in parentheses, and may hold anything.
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // the first after the name is field 3
  if (fields.size() <= kStartTime) return std::nullopt;
  if (fields[0] == "Z" || fields[0] == "X") return std::nullopt;  // ended, not reaped yet
  const std::string& field = fields[kStartTime];
  std::uint64_t ticks = 0;
  if (std::from_chars(field.data(), field.data() + field.size(), ticks).ec != std::errc{})
    return std::nullopt;
  return ticks;
}

bool is_live(const Lease& lease, WallTime now) {
  if (lease.expires && *lease.expires <= now) return false;
  return lease.pid == 0 || process_start_time(lease.pid) == lease.pid_start_time;
}

}  // namespace spark::staging
