#include <sys/resource.h>
#include <unistd.h>

#include <iterator>

#include "base/kernel/process_stat.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
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
  const ProcessStat stat = read_process_stat(root, "self").value_or(ProcessStat());
  const auto field = [&](std::size_t number) { return stat.field<double>(number); };
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto user = field(14), kernel = field(15), started = times(field(22), tick);
  const auto booted = boot_time(root);
  counter(page, "process_cpu_seconds_total", "User and system CPU time of the daemon, without its workers.")
      .add({}, user && kernel ? std::optional((*user + *kernel) * tick) : std::nullopt);
  gauge(page, "process_resident_memory_bytes", "Resident memory of the daemon.")
      .add({}, times(field(24), static_cast<double>(::sysconf(_SC_PAGESIZE))));
  gauge(page, "process_virtual_memory_bytes", "Virtual memory of the daemon.").add({}, field(23));
  gauge(page, "process_start_time_seconds", "When the daemon was started.")
      .add({}, booted && started ? std::optional(static_cast<double>(*booted) + *started) : std::nullopt);
  gauge(page, "process_open_fds", "File descriptors that the daemon has open.").add({}, open_files(root));
  gauge(page, "process_max_fds", "File descriptors that the daemon may have open.").add({}, most_files());
}

}  // namespace spark::metrics
