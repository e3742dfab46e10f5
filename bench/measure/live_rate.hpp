// The rate of a child's work while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/units.hpp"
#include "bench/fio/process.hpp"

namespace spark::bench {

// Current rate in bytes per second; 0: unknown yet.
using RateSink = std::function<void(double)>;

// The rate of a growing number since the previous sample.
class RateMeter {
 public:
  double rate_after(double seconds, Bytes bytes);

 private:
  double seconds_ = 0;
  Bytes bytes_ = 0;
};

// A number that a forked child increments and its parent reads.
class SharedCounter {
 public:
  SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  ~SharedCounter();
  std::atomic<std::uint64_t>* get() const { return counter_; }  // null: no memory for it, no rate reported

 private:
  std::atomic<std::uint64_t>* counter_ = nullptr;
};

// Reports the counter's rate about once per second, however often it is called. The sink and the counter
// outlive it.
class Teller {
 public:
  Teller(const RateSink& tell, const SharedCounter& counter) : tell_(tell), counter_(counter) {}
  void operator()();

 private:
  const RateSink& tell_;
  const SharedCounter& counter_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double told_ = 0;
  RateMeter meter_;
};

// Runs fio and reports the rate of each second.
FioEnd run_and_tell(FioRun fio, Direction direction, const StopFlag& stop, const RateSink& tell);

}  // namespace spark::bench
