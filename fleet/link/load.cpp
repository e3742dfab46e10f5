#include "fleet/link/load.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/file.hpp"

namespace spark::fleet {
namespace {

constexpr double kSaturated = 0.75;

std::chrono::nanoseconds time_of_thread() {
  std::istringstream text(read_file("/proc/thread-self/schedstat").value_or(""));
  std::int64_t ran = 0, waited = 0;
  if (text >> ran >> waited) return std::chrono::nanoseconds(ran + waited);
  rusage used{};  // a kernel without these statistics tells only how long it ran
  ::getrusage(RUSAGE_THREAD, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// "cpu3 user nice system idle iowait irq softirq …"
std::vector<std::uint64_t> interrupts_of_processors() {
  std::vector<std::uint64_t> all;
  std::istringstream text(read_file("/proc/stat").value_or(""));
  for (std::string line; std::getline(text, line) && line.starts_with("cpu");) {
    if (line.starts_with("cpu ")) continue;
    std::istringstream words(line);
    std::string name;
    std::uint64_t ticks[7]{};
    words >> name;
    for (std::uint64_t& one : ticks) words >> one;
    all.push_back(ticks[5] + ticks[6]);
  }
  return all;
}

}  // namespace

Load current_load() {
  return {time_of_thread(), interrupts_of_processors()};
}

Load growth(const Load& before, const Load& after) {
  Load grown{after.thread - before.thread, {}};
  for (std::size_t i = 0; i < std::min(before.interrupts.size(), after.interrupts.size()); ++i)
    grown.interrupts.push_back(after.interrupts[i] - std::min(before.interrupts[i], after.interrupts[i]));
  return grown;
}

void add(Load& sum, const Load& more) {
  sum.thread += more.thread;
  sum.interrupts.resize(std::max(sum.interrupts.size(), more.interrupts.size()));
  for (std::size_t i = 0; i < more.interrupts.size(); ++i) sum.interrupts[i] += more.interrupts[i];
}

double busy_share(const Load& grown, std::chrono::nanoseconds elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (seconds <= 0) return 0;
  const double possible = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))) * seconds;  // ticks
  const bool is_saturated = std::ranges::any_of(grown.interrupts, [&](std::uint64_t ticks) {
    return static_cast<double>(ticks) >= kSaturated * possible;
  });
  const double share = std::chrono::duration<double>(grown.thread).count() / seconds;
  return is_saturated ? 1 : std::clamp(share, 0.0, 1.0);
}

}  // namespace spark::fleet
