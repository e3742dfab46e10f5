// The wait before the next attempt: doubling, capped, with jitter so that twenty hosts do not retry at the
// same time.
#pragma once

#include <algorithm>
#include <random>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark {

class Backoff {
 public:
  Backoff(Duration first, Duration longest) : Backoff(first, longest, std::random_device{}()) {}
  // The jitter depends only on the moment: no two hosts start in the same nanosecond, and a simulated host
  // repeats itself.
  Backoff(Duration first, Duration longest, const Clock& clock)
      : Backoff(first, longest, static_cast<std::uint32_t>(clock.steady().time_since_epoch().count())) {}

  // The next wait, between 80 % and 120 % of 1, 2, 4, … times the first, at most the longest.
  Duration next() {
    const Duration base = next_;
    next_ = std::min(longest_, next_ * 2);
    return Duration(static_cast<std::int64_t>(static_cast<double>(base.count()) * spread_(random_)));
  }
  void reset() { next_ = first_; }

 private:
  Backoff(Duration first, Duration longest, std::uint32_t seed)
      : first_(first), longest_(longest), next_(first), random_(seed) {}

  Duration first_, longest_, next_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> spread_{0.8, 1.2};
};

}  // namespace spark
