// The host's counters around a cell: where its bytes came from, what it cost, and whether its mount stayed
// the same.
#pragma once

#include <functional>
#include <string>

#include "bench/facts/counters.hpp"
#include "bench/measure/bench_target.hpp"

namespace spark::bench {

// What the host burns when nothing of ours runs: two seconds of it, told about every 250 ms.
IdleCpu listen_to_idle(const SystemRoot& root, const StopFlag& stop, const std::function<void()>& tell);

// Looks when it is made. Root and target outlive it.
class CounterSnapshot {
 public:
  CounterSnapshot(const SystemRoot& root, const BenchTarget& target);

  // Fills in CPU and origin since then; what changed meanwhile is added to the reasons.
  void fill(Cell& cell) const;

 private:
  std::string state() const;

  const SystemRoot& root_;
  const BenchTarget& target_;
  const std::string state_;
  const OriginCounters origin_;
  const std::chrono::steady_clock::time_point start_;
  const CpuCounters cpu_;
};

}  // namespace spark::bench
