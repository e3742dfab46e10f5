#include "staging/copy/lanes/piece_limit.hpp"

#include <algorithm>

#include "staging/manifest/hash.hpp"

namespace spark::staging {
namespace {

constexpr double kWorthSeconds = 0.5;
constexpr double kLookBackSeconds = 0.5;
constexpr double kLeastSeconds = 0.25;

}  // namespace

void PieceLimit::moved(Bytes bytes, SteadyTime now) {
  const std::scoped_lock lock(mutex_);
  bytes_ += bytes;
  const SteadyTime::duration elapsed = now - since_;
  // The first bytes arrive immediately, whatever the later rate.
  const double seconds = std::max(std::chrono::duration<double>(elapsed).count(), kLeastSeconds);
  const double pieces =
      static_cast<double>(bytes_) / seconds * kWorthSeconds / static_cast<double>(kHashPiece);
  most_ = std::max(kFewest, static_cast<std::uint64_t>(pieces));
  if (seconds < kLookBackSeconds) return;
  const bool has_stalled = seconds > 4 * kLookBackSeconds;
  bytes_ = has_stalled ? 0 : bytes_ / 2;  // older values count less and less
  since_ = has_stalled ? now : now - elapsed / 2;
}

}  // namespace spark::staging
