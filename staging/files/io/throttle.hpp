// Spreads bytes evenly over time: at a rate that was given (--max-rate), or until a time (prefetch --by).
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::staging {

class Throttle {
 public:
  explicit Throttle(Bytes bytes_per_second) : rate_(bytes_per_second) {}  // 0: no limit

  // So many bytes are to move by then: at the rate that this takes, reckoned anew from what is left and the
  // time that is left, not faster than the limit, and not below 1 MB/s. Afterwards, and for more bytes,
  // without it.
  void finish_by(SteadyTime end, Bytes bytes);

  // Not faster than this from now on, whatever else there is; 0: no such limit.
  void yield_to(Bytes bytes_per_second);

  // Books `bytes` and tells how long to wait before moving them. Time that nobody used is not saved up.
  std::chrono::nanoseconds book(Bytes bytes, SteadyTime now);

  // Books, and sleeps that long; ends early once `is_stopped` says so. Gives the time slept.
  std::chrono::nanoseconds wait(Bytes bytes, const std::function<bool()>& is_stopped);

 private:
  double rate_at(SteadyTime now) const;  // bytes per second; 0: no limit

  Bytes rate_;
  Bytes yielding_ = 0;  // bytes per second; 0: no limit
  std::optional<SteadyTime> end_;
  Bytes left_ = 0;  // to move by then
  std::mutex mutex_;
  SteadyTime free_at_{};
};

}  // namespace spark::staging
