#include "staging/files/io/throttle.hpp"

#include <algorithm>
#include <thread>

namespace spark::staging {

void Throttle::finish_by(SteadyTime end, Bytes bytes) {
  const std::scoped_lock lock(mutex_);
  end_ = end;
  left_ = bytes;
}

void Throttle::yield_to(Bytes bytes_per_second) {
  const std::scoped_lock lock(mutex_);
  yielding_ = bytes_per_second;
}

double Throttle::rate_at(SteadyTime now) const {
  const Bytes least = yielding_ > 0 && (rate_ == 0 || yielding_ < rate_) ? yielding_ : rate_;
  const auto limit = static_cast<double>(least);
  // Bytes booked ahead must not be waited for twice.
  const auto from = std::max(now, free_at_);
  if (!end_ || left_ == 0 || from >= *end_) return limit;
  // A lower rate has no benefit, and a chunk would take so long that the copy looked stalled.
  constexpr double kLowest = 1e6;
  const double needed =
      std::max(kLowest, static_cast<double>(left_) / std::chrono::duration<double>(*end_ - from).count());
  return limit > 0 ? std::min(limit, needed) : needed;
}

std::chrono::nanoseconds Throttle::book(Bytes bytes, SteadyTime now, bool is_urgent) {
  const std::scoped_lock lock(mutex_);
  const double rate = rate_at(now);
  left_ -= std::min(left_, bytes);
  if (rate == 0) return {};
  const std::chrono::duration<double> seconds(static_cast<double>(bytes) / rate);
  const auto takes = std::chrono::duration_cast<SteadyTime::duration>(seconds);
  free_at_ = std::max(free_at_, now);
  urgent_free_at_ = std::max(urgent_free_at_, now);
  const auto wait = (is_urgent ? urgent_free_at_ : free_at_) - now;
  free_at_ += takes;
  if (is_urgent) urgent_free_at_ += takes;
  return wait;
}

std::chrono::nanoseconds Throttle::wait(Bytes bytes, const std::function<bool()>& is_stopped,
                                        bool is_urgent) {
  const auto all = book(bytes, std::chrono::steady_clock::now(), is_urgent);
  auto left = all;
  while (left.count() > 0 && !is_stopped()) {
    const auto step = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(50));
    std::this_thread::sleep_for(step);
    left -= step;
  }
  return all - left;
}

}  // namespace spark::staging
