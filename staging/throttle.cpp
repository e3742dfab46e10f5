#include "staging/throttle.hpp"

#include <algorithm>

namespace spark::staging {

std::chrono::nanoseconds Throttle::book(Bytes bytes, SteadyTime now) {
  if (rate_ == 0) return {};
  const std::scoped_lock lock(mutex_);
  free_at_ = std::max(free_at_, now);
  const auto wait = free_at_ - now;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
  free_at_ += std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
  return wait;
}

}  // namespace spark::staging
