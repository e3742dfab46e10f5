// Spreads bytes evenly over time: at a given rate (--max-rate), or until a given time (prefetch --by).
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
  explicit Throttle(Bytes bytes_per_second) : rate_(bytes_per_second) {}  // 0 means no limit

  // `bytes` must move by `end`. The rate is recalculated from the bytes and the time left; it is not above
  // the limit and not below 1 MB/s. After `end`, and for further bytes, only the limit applies.
  void finish_by(SteadyTime end, Bytes bytes);

  // Limits the rate from now on, in addition to the other limits; 0 means no such limit.
  void yield_to(Bytes bytes_per_second);

  // Books `bytes` and returns how long to wait before moving them. Unused time is not saved up. What is
  // urgent waits for other urgent bytes alone: those that were booked before it move beside it, and those
  // that are booked after it wait for it.
  std::chrono::nanoseconds book(Bytes bytes, SteadyTime now, bool is_urgent = false);

  // Books, and sleeps that long; ends early once `is_stopped` returns true. Returns the time slept.
  std::chrono::nanoseconds wait(Bytes bytes, const std::function<bool()>& is_stopped, bool is_urgent = false);

 private:
  double rate_at(SteadyTime now) const;  // bytes per second; 0 means no limit

  Bytes rate_;
  Bytes yielding_ = 0;  // bytes per second; 0 means no limit
  std::optional<SteadyTime> end_;
  Bytes left_ = 0;  // to move until end_
  std::mutex mutex_;
  SteadyTime free_at_{}, urgent_free_at_{};
};

}  // namespace spark::staging
