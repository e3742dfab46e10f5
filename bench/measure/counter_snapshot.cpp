#include "bench/measure/counter_snapshot.hpp"

#include "base/file.hpp"
#include "bench/facts/storage_facts.hpp"
#include "bench/record/gates.hpp"

namespace spark::bench {

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

// The mount table is asked again: a mount that was made over this one is another one.
std::string CounterSnapshot::state() const {
  const auto table = read_file(root_ / "proc/self/mountinfo");
  const auto mount = table ? find_mount(*table, target_.record.folder, target_.device) : std::nullopt;
  return state_of(root_, target_.record.storage, mount ? mount->options : "not mounted");
}

}  // namespace spark::bench
