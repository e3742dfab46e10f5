// The host's counters around a cell: where its bytes came from, what it cost, and whether its mount stayed
// the same.
#pragma once

#include <string>

#include "bench/facts/counters.hpp"
#include "bench/measure/site.hpp"

namespace spark::bench {

// Looks when it is made. Root and site outlive it.
class Witness {
 public:
  Witness(const SystemRoot& root, const Site& site);

  // Fills in CPU and origin since then; what changed meanwhile is added to the reasons.
  void testify(Cell& cell) const;

 private:
  std::string state() const;

  const SystemRoot& root_;
  const Site& site_;
  const std::string state_;
  const OriginCounters origin_;
  const std::chrono::steady_clock::time_point start_;
  const CpuCounters cpu_;
};

}  // namespace spark::bench
