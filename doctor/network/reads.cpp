// The rate at which each connected target is read.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "doctor/network/links.hpp"
#include "doctor/network/nics.hpp"

namespace spark::doctor {
namespace {

constexpr char kReadsArea[] = "link";
constexpr double kEnough = 0.65;  // of the link, as for peers
constexpr double kCarries = 0.1;  // of the reads; the kernel tries idle paths now and then
constexpr double kBytesOfMegabit = 125'000;

struct Path {
  std::string address, card;
  std::uint64_t reads = 0;  // that have ended on it, since it was made
};

// Of a namespace with several paths the kernel counts on each: "nvme1c3n1" is that of nvme1n1 through nvme3.
std::uint64_t reads_through(const SystemRoot& root, const std::string& device,
                            const std::string& controller) {
  const std::size_t n = device.rfind('n');
  if (n == std::string::npos || !controller.starts_with("nvme")) return 0;
  const std::string node = device.substr(0, n) + "c" + controller.substr(4) + device.substr(n);
  std::istringstream numbers(read_line_file(root / "sys/class/block" / node / "stat").value_or(""));
  std::uint64_t reads = 0;
  numbers >> reads;
  return reads;
}

std::vector<Path> paths_of(const Host& host, const host::FabricDevice& device) {
  std::vector<Path> paths;
  for (const nvmetcp::Controller& path : device.paths) {
    if (!path.is_live() || path.transport != "tcp") continue;
    const auto route = route_to(host, path.portal.address, path.interface);
    paths.push_back({path.portal.address, route ? route->interface : "",
                     reads_through(host.root, device.device, path.name)});
  }
  return paths;
}

// Those that carried the reads; all if the kernel does not tell.
std::vector<Path> used_paths(const std::vector<Path>& before, const std::vector<Path>& after) {
  std::vector<Path> grown;
  double sum = 0;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const std::uint64_t reads = after[i].reads - std::min(before[i].reads, after[i].reads);
    grown.push_back({after[i].address, after[i].card, reads});
    sum += static_cast<double>(reads);
  }
  if (sum == 0) return after;
  std::erase_if(grown, [&](const Path& path) { return static_cast<double>(path.reads) < kCarries * sum; });
  return grown;
}

// What these paths can carry, bytes per second; 0: unknown. Without counts, `is_sum` is false: one of them
// may have carried all of it.
double possible_rate(const std::vector<Nic>& nics, const std::set<std::string>& cards, bool is_sum) {
  double all = 0, most = 0;
  for (const std::string& card : cards) {
    const Nic* nic = find_nic(nics, card);
    const double one = nic == nullptr ? 0 : nic->megabits * kBytesOfMegabit;
    all += one;
    most = std::max(most, one);
  }
  return is_sum ? all : most;
}

std::string joined(const std::set<std::string>& words) {
  return join(std::vector(words.begin(), words.end()), ", ");
}

void test_read(const Host& host, const LinkMeter& meter, const host::FabricDevice& device,
               const std::vector<Path>& before, Report& report) {
  std::set<std::string> all, addresses, cards;
  for (const Path& path : before) all.insert(path.address);
  meter.progress(printable(joined(all)) + ": reading " + device.device);
  const auto rate = meter.read("/dev/" + device.device);
  if (!rate) {
    report.unknown.push_back("the rate of reads from " + printable(joined(all)) + " (" + rate.error().what +
                             ")");
    return;
  }
  const std::vector<Path> after = paths_of(host, device);
  const std::vector<Path> used = used_paths(before, after.size() == before.size() ? after : before);
  for (const Path& path : used) {
    addresses.insert(path.address);
    if (!path.card.empty()) cards.insert(path.card);
  }
  const bool is_counted = std::ranges::any_of(used, [](const Path& path) { return path.reads > 0; });
  const double link = possible_rate(read_nics(host.root), cards, is_counted && after.size() == before.size());
  const std::string target = printable(joined(addresses));
  const std::string words = "reads of " + device.device + " from " + target + " give " +
                            format_bits(*rate * 8) +
                            (link == 0 ? "" : " of " + format_bits(link * 8) + " on " + joined(cards));
  if (*rate >= kEnough * link) {
    report.fine.push_back("target: " + words);
    return;
  }
  report.note(kReadsArea, words,
              "the target's drives, its processors or the link set that rate: reads alone can't tell which",
              "test the link alone: iperf3 -c " + target +
                  " -P 8, or `spark-stage fleet test` with a host on the same switch");
}

}  // namespace

void test_reads(const Host& host, const LinkMeter& meter, Report& report) {
  std::set<std::set<std::string>> seen;  // the addresses of targets
  for (const host::FabricDevice& device : host::survey(host.root).devices) {
    const std::vector<Path> paths = paths_of(host, device);
    std::set<std::string> addresses;
    for (const Path& path : paths) addresses.insert(path.address);
    if (!addresses.empty() && seen.insert(addresses).second) test_read(host, meter, device, paths, report);
  }
}

}  // namespace spark::doctor
