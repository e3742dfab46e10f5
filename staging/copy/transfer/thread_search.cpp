#include "staging/copy/transfer/thread_search.hpp"

#include <algorithm>

namespace spark::staging {
namespace {

constexpr double kFaster = 1.05;  // less is chance
constexpr unsigned kRest = 16;  // measurements after two failed trials: trials then take a tenth of the time

}  // namespace

void ThreadSearch::measured(double rate) {
  if (!trial_) {
    best_rate_ = rate;
    if (rest_ == 0) return try_next();
    --rest_;
    return;
  }
  const bool is_faster = rate > best_rate_ * kFaster;
  if (is_faster) {
    best_ = *trial_;
    best_rate_ = rate;
  }
  trial_.reset();
  if (is_faster) {
    failed_ = 0;
    return try_next();
  }
  // The best number is measured again before the next trial: the rate may have changed meanwhile.
  goes_up_ = !goes_up_;
  if (++failed_ == 2) {
    failed_ = 0;
    rest_ = kRest;
  }
}

void ThreadSearch::try_next() {
  const unsigned more = std::min(2 * best_, range_.most);
  const unsigned fewer = std::max(best_ / 2, range_.fewest);
  if ((goes_up_ ? more : fewer) == best_) goes_up_ = !goes_up_;
  const unsigned tried = goes_up_ ? more : fewer;
  if (tried != best_) trial_ = tried;
}

}  // namespace spark::staging
