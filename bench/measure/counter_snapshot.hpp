// The host's counters around a cell: the source of its bytes, its CPU cost, and whether its mount stayed the
// same.
#pragma once

#include <functional>
#include <string>

#include "bench/facts/counters.hpp"
#include "bench/measure/bench_target.hpp"

namespace spark::bench {

// Measures the host's CPU use without our load for two seconds; calls the function about every 250 ms.
IdleCpu listen_to_idle(const SystemRoot& root, const StopFlag& stop, const std::function<void()>& tell);

// Takes the snapshot on construction. Root and target outlive it.
class CounterSnapshot {
 public:
  CounterSnapshot(const SystemRoot& root, const BenchTarget& target);

  // Fills in CPU use and origin since construction; adds changes of the mount to the reasons.
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
