#include "bench/facts/counters.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/kernel/process_stat.hpp"
#include "base/text.hpp"
#include "bench/record/statistics.hpp"

namespace spark::bench {
namespace {

constexpr unsigned long kKernelThread = 0x00200000;  // PF_KTHREAD in the flags of /proc/PID/stat
constexpr Bytes kSector = 512;

std::vector<std::uint64_t> numbers_of(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& word : split(text, ' '))
    if (const auto number = parse_number<std::uint64_t>(word)) numbers.push_back(*number);
  return numbers;
}

double ticks_a_second() {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return ticks > 0 ? static_cast<double>(ticks) : 100;
}

// utime and stime of a kernel thread; 0 for a user process.
std::uint64_t kernel_thread_ticks(const ProcessStat& stat) {
  const auto flags = stat.field<std::uint64_t>(9), user = stat.field<std::uint64_t>(14),
             kernel = stat.field<std::uint64_t>(15);
  return user && kernel && (flags.value_or(0) & kKernelThread) != 0 ? *user + *kernel : 0;
}

double kernel_thread_seconds(const SystemRoot& root) {
  std::uint64_t ticks = 0;
  for (const std::string& name : names_in_folder(root / "proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = read_process_stat(root, name);
    if (stat) ticks += kernel_thread_ticks(*stat);
  }
  return static_cast<double>(ticks) / ticks_a_second();
}

// The third field of a block device's stat counts sectors read.
std::optional<Bytes> device_bytes(const SystemRoot& root, const std::string& device) {
  const auto text = read_line_file(root / ("sys/class/block/" + device + "/stat"));
  if (!text) return std::nullopt;
  const auto numbers = numbers_of(*text);
  return numbers.size() > 2 ? std::optional(numbers[2] * kSector) : std::nullopt;
}

// The statistics of the last mount at that path, which hides the earlier ones: one line for each name.
std::vector<std::string> mount_statistics(const SystemRoot& root, const std::string& mount_point) {
  const auto text = read_file(root / "proc/self/mountstats");
  bool is_here = false;
  std::vector<std::string> lines;
  for (const std::string& line : split(text ? *text : "", '\n')) {
    std::string words(trim(line));
    std::replace(words.begin(), words.end(), '\t', ' ');
    if (words.starts_with("device ")) {
      is_here = words.find(" mounted on " + mount_point + " with fstype nfs") != std::string::npos;
      if (is_here) lines.clear();
    } else if (is_here) {
      lines.push_back(std::move(words));
    }
  }
  return lines;
}

// "bytes: normalread normalwrite directread directwrite serverread …"
std::optional<Bytes> nfs_bytes(const SystemRoot& root, const std::string& mount_point) {
  for (const std::string& line : mount_statistics(root, mount_point)) {
    if (!line.starts_with("bytes:")) continue;
    const auto numbers = numbers_of(std::string_view(line).substr(6));
    if (numbers.size() >= 5) return numbers[4];
  }
  return std::nullopt;
}

std::optional<Bytes> nic_bytes(const SystemRoot& root, const std::string& nic) {
  const auto text = read_line_file(root / ("sys/class/net/" + nic + "/statistics/rx_bytes"));
  if (!text) return std::nullopt;
  const auto numbers = numbers_of(*text);
  return numbers.size() == 1 ? std::optional<Bytes>(numbers[0]) : std::nullopt;
}

std::optional<Bytes> difference(std::optional<Bytes> before, std::optional<Bytes> after) {
  if (!before || !after || *after < *before) return std::nullopt;
  return *after - *before;
}

}  // namespace

CpuCounters read_cpu(const SystemRoot& root) {
  CpuCounters counters;
  const auto text = read_file(root / "proc/stat");
  for (const std::string& line : split(text ? *text : "", '\n')) {
    if (!line.starts_with("cpu")) break;
    // user nice system idle iowait irq softirq steal
    const auto ticks = numbers_of(std::string_view(line).substr(line.find(' ') + 1));
    if (ticks.size() < 7) continue;
    const double busy =
        static_cast<double>(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / ticks_a_second();
    const double idle = static_cast<double>(ticks[3] + ticks[4]) / ticks_a_second();
    if (line.starts_with("cpu ")) {
      counters.busy = busy;
      counters.idle = idle;
    } else {
      counters.core_busy.push_back(busy);
      counters.core_idle.push_back(idle);
    }
  }
  counters.kernel_threads = kernel_thread_seconds(root);
  return counters;
}

CpuUse cpu_between(const CpuCounters& before, const CpuCounters& after, double seconds) {
  CpuUse use;
  use.seconds = seconds;
  use.busy_s = std::max(0.0, after.busy - before.busy);
  use.kernel_threads_s = std::max(0.0, after.kernel_threads - before.kernel_threads);
  const double idle = std::max(0.0, after.idle - before.idle);
  if (use.busy_s + idle > 0) use.idle_share = idle / (use.busy_s + idle);
  for (std::size_t i = 0; i < std::min(before.core_busy.size(), after.core_busy.size()); ++i) {
    const double busy = after.core_busy[i] - before.core_busy[i];
    const double all = busy + after.core_idle[i] - before.core_idle[i];
    if (all > 0) use.busiest_core = std::max(use.busiest_core, busy / all);
  }
  return use;
}

IdleCpu idle_cpu(const std::vector<double>& rates) {
  if (rates.empty()) return {};
  const auto count = static_cast<double>(rates.size());
  return {mean(rates), rates.size() < 2 ? mean(rates) : deviation(rates) / std::sqrt(count)};
}

OriginCounters read_origin(const SystemRoot& root, const OriginSource& source) {
  OriginCounters counters;
  if (!source.device.empty()) counters.device = device_bytes(root, source.device);
  for (const std::string& device : source.path_devices) {
    counters.path_devices = counters.path_devices.value_or(0) + device_bytes(root, device).value_or(0);
  }
  if (!source.nfs_mount.empty()) counters.nfs = nfs_bytes(root, source.nfs_mount);
  if (!source.nic.empty()) counters.nic = nic_bytes(root, source.nic);
  for (const std::string& nic : source.more_nics) {
    const auto more = nic_bytes(root, nic);
    counters.nic = counters.nic && more ? std::optional(*counters.nic + *more) : std::nullopt;
  }
  return counters;
}

std::optional<std::uint64_t> nfs_opens(const SystemRoot& root, const std::string& mount_point) {
  std::optional<std::uint64_t> opens;
  for (const std::string& line : mount_statistics(root, mount_point)) {
    if (!line.starts_with("OPEN:") && !line.starts_with("OPEN_NOATTR:")) continue;
    const auto numbers = numbers_of(std::string_view(line).substr(line.find(':') + 1));
    if (!numbers.empty()) opens = opens.value_or(0) + numbers[0];  // the operations
  }
  return opens;
}

Origin origin_between(const OriginSource& source, const OriginCounters& before, const OriginCounters& after) {
  Origin origin;
  origin.nic_bytes = difference(before.nic, after.nic);
  const auto device = difference(before.device, after.device);
  const auto paths = difference(before.path_devices, after.path_devices);
  const auto nfs = difference(before.nfs, after.nfs);
  if (nfs) {
    origin.bytes = nfs;
    origin.counter = "NFS mount";
  } else if (paths && *paths > device.value_or(0)) {
    origin.bytes = paths;
    const bool are_drives =
        std::ranges::find(source.path_devices, source.device) != source.path_devices.end();
    origin.counter = (are_drives ? "drives of the file system on " : "paths of ") + source.device;
  } else if (device && (*device > 0 || !origin.nic_bytes)) {
    origin.bytes = device;
    origin.counter = "block device " + source.device;
  } else if (origin.nic_bytes) {
    // With native multipath some kernels count nothing at the device, so the network card's counter is used.
    origin.bytes = origin.nic_bytes;
    origin.counter = "network card " + source.nic;
    for (const std::string& nic : source.more_nics) origin.counter += ", " + nic;
  }
  return origin;
}

}  // namespace spark::bench
