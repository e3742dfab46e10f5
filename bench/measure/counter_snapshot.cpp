#include "bench/measure/counter_snapshot.hpp"

#include <thread>

#include "base/file.hpp"
#include "bench/facts/storage_facts.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/gates.hpp"

namespace spark::bench {

IdleCpu listen_to_idle(const SystemRoot& root, const StopFlag& stop, const std::function<void()>& tell) {
  constexpr int kLooks = 8;
  constexpr Duration kLook = kIdleTime / kLooks;
  std::vector<double> rates;
  CpuCounters before = read_cpu(root);
  for (int i = 0; i < kLooks && !stop; ++i) {
    tell();
    std::this_thread::sleep_for(kLook);
    const CpuCounters after = read_cpu(root);
    const double seconds = std::chrono::duration<double>(kLook).count();
    rates.push_back(cpu_between(before, after, seconds).busy_s / seconds);
    before = after;
  }
  return idle_cpu(rates);
}

CounterSnapshot::CounterSnapshot(const SystemRoot& root, const BenchTarget& target)
    : root_(root),
      target_(target),
      state_(state()),
      origin_(read_origin(root, target.record.storage.origin)),
      start_(std::chrono::steady_clock::now()),
      cpu_(read_cpu(root)) {}

void CounterSnapshot::fill(Cell& cell) const {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  cell.cpu = cpu_between(cpu_, read_cpu(root_), seconds);
  const OriginSource& source = target_.record.storage.origin;
  cell.origin = origin_between(source, origin_, read_origin(root_, source));
  for (const std::string& fault : change_faults(state_, state())) cell.reasons.push_back(fault);
}

// Rereads the mount table to detect a mount made over this one.
std::string CounterSnapshot::state() const {
  const auto table = mounts::read_mount_table(root_);
  const auto mount = table ? find_mount(*table, target_.record.folder, target_.device) : std::nullopt;
  return state_of(root_, target_.record.storage, mount ? mount->options : "not mounted");
}

}  // namespace spark::bench
