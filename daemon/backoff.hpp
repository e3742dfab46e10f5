// The wait before the next attempt: doubling, capped, with jitter so that twenty hosts do not retry at the
// same time.
#pragma once

#include <algorithm>
#include <random>

#include "base/units.hpp"

namespace spark {

class Backoff {
 public:
  Backoff(Duration first, Duration longest) : first_(first), longest_(longest), next_(first) {}

  // The next wait, between 80 % and 120 % of 1, 2, 4, … times the first, at most the longest.
  Duration next() {
    const Duration base = next_;
    next_ = std::min(longest_, next_ * 2);
    return Duration(static_cast<std::int64_t>(static_cast<double>(base.count()) * spread_(random_)));
  }
  void reset() { next_ = first_; }

 private:
  Duration first_, longest_, next_;
  std::mt19937 random_{std::random_device{}()};
  std::uniform_real_distribution<double> spread_{0.8, 1.2};
};

}  // namespace spark
