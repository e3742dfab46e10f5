// --max-rate: spreads bytes evenly over time.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::staging {

class Throttle {
 public:
  explicit Throttle(Bytes bytes_per_second) : rate_(bytes_per_second) {}  // 0: no limit

  // Books `bytes` and tells how long to wait before moving them. Time that nobody used is not saved up.
  std::chrono::nanoseconds book(Bytes bytes, SteadyTime now);

  // Books, and sleeps that long; ends early once `is_stopped` says so. Gives the time slept.
  std::chrono::nanoseconds wait(Bytes bytes, const std::function<bool()>& is_stopped);

 private:
  Bytes rate_;
  std::mutex mutex_;
  SteadyTime free_at_{};
};

}  // namespace spark::staging
