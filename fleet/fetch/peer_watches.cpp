#include "fleet/fetch/peer_watches.hpp"

#include <algorithm>

#include "fleet/board/board.hpp"
#include "fleet/fetch/timings.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kLately{30'000};
constexpr int kSlowestAnswers = 4;

}  // namespace

void PeerWatches::answered(SteadyTime::duration took, SteadyTime now) {
  if (took < slowest_ && now - slowest_at_ < kLately) return;
  slowest_ = std::chrono::duration_cast<std::chrono::milliseconds>(took);
  slowest_at_ = now;
}

std::chrono::milliseconds PeerWatches::patience() const {
  return std::clamp(kSlowestAnswers * slowest_, kSilent, kLongestSilence);
}

void PeerWatches::pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds interval) {
  ended_.wait_for(lock, interval, [this] { return has_ended_.load(); });
}

void PeerWatches::end() {
  has_ended_ = true;
  interrupt_.set();
  ended_.notify_all();
}

}  // namespace spark::fleet
