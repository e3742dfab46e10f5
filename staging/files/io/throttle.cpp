#include "staging/files/io/throttle.hpp"

#include <algorithm>
#include <thread>

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

std::chrono::nanoseconds Throttle::wait(Bytes bytes, const std::function<bool()>& is_stopped) {
  const auto all = book(bytes, std::chrono::steady_clock::now());
  auto left = all;
  while (left.count() > 0 && !is_stopped()) {
    const auto step = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(50));
    std::this_thread::sleep_for(step);
    left -= step;
  }
  return all - left;
}

}  // namespace spark::staging
