#include <sys/resource.h>
#include <unistd.h>

#include <iterator>

#include "base/text.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

// /proc/self/stat by the field numbers of proc(5); the field before the third may contain any character.
class Stat {
 public:
  explicit Stat(const SystemRoot& root) {
    const auto text = read_file(root / "proc/self/stat");
    if (!text) return;
    const std::size_t name_end = text->rfind(") ");
    if (name_end != std::string::npos) fields_ = split(std::string_view(*text).substr(name_end + 2), ' ');
  }
  std::optional<double> field(std::size_t number) const {
    return number - 3 < fields_.size() ? leading_number<double>(fields_[number - 3]) : std::nullopt;
  }

 private:
  std::vector<std::string> fields_;
};

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

// The line "btime SECONDS" of /proc/stat.
std::optional<double> boot_time(const SystemRoot& root) {
  const auto text = read_file(root / "proc/stat");
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n')) {
    if (line.starts_with("btime ")) return leading_number<double>(std::string_view(line).substr(6));
  }
  return std::nullopt;
}

std::optional<double> open_files(const SystemRoot& root) {
  std::error_code error;
  const std::filesystem::directory_iterator files(root / "proc/self/fd", error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(files), end(files)));
}

std::optional<double> most_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void add_process(Page& page, const SystemRoot& root) {
  const Stat stat(root);
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto user = stat.field(14), kernel = stat.field(15), started = times(stat.field(22), tick);
  const auto booted = boot_time(root);
  counter(page, "process_cpu_seconds_total", "User and system CPU time of the daemon, without its workers.")
      .add({}, user && kernel ? std::optional((*user + *kernel) * tick) : std::nullopt);
  gauge(page, "process_resident_memory_bytes", "Resident memory of the daemon.")
      .add({}, times(stat.field(24), static_cast<double>(::sysconf(_SC_PAGESIZE))));
  gauge(page, "process_virtual_memory_bytes", "Virtual memory of the daemon.").add({}, stat.field(23));
  gauge(page, "process_start_time_seconds", "When the daemon was started.")
      .add({}, booted && started ? std::optional(*booted + *started) : std::nullopt);
  gauge(page, "process_open_fds", "File descriptors that the daemon has open.").add({}, open_files(root));
  gauge(page, "process_max_fds", "File descriptors that the daemon may have open.").add({}, most_files());
}

}  // namespace spark::metrics
