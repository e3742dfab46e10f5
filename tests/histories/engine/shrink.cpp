#include <algorithm>

#include "tests/histories/engine/history.hpp"

namespace spark::histories {
namespace {

class Shrinker {
 public:
  Shrinker(const Area& area, History history, const std::string& oracle, unsigned tries,
           const std::function<bool()>& may_go_on)
      : area_(area), best_(std::move(history)), oracle_(oracle), tries_(tries), may_go_on_(may_go_on) {}

  History shrink() {
    cut_after_violation();
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (std::size_t size = std::max<std::size_t>(best_.steps.size() / 2, 1);; size /= 2) {
        if (remove_runs_of(size)) shorter = true;
        if (size <= 1) break;
      }
    }
    lower_dice();
    return best_;
  }

 private:
  bool accept(const History& candidate) {
    if (tries_ > 0 && may_go_on_ && !may_go_on_()) tries_ = 0;
    if (tries_ == 0) return false;
    --tries_;
    const Outcome outcome = run(area_, candidate);
    if (!outcome.violation || outcome.violation->oracle != oracle_) return false;
    best_ = candidate;
    best_.steps.resize(std::min(best_.steps.size(), outcome.taken));
    return true;
  }

  void cut_after_violation() { (void)accept(best_); }

  // From the end: the last steps before a violation matter most, so earlier ones become removable first.
  bool remove_runs_of(std::size_t size) {
    bool removed = false;
    for (std::size_t end = best_.steps.size(); end > 0;) {
      const std::size_t begin = end > size ? end - size : 0;
      History candidate = best_;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                            candidate.steps.begin() + static_cast<std::ptrdiff_t>(end));
      if (accept(candidate)) removed = true;
      end = std::min(begin, best_.steps.size());
    }
    return removed;
  }

  void lower_dice() {
    for (std::size_t i = 0; i < best_.steps.size(); ++i) {
      for (std::size_t die = 0; die < best_.steps[i].dice.size() && i < best_.steps.size(); ++die) {
        if (best_.steps[i].dice[die] == 0) continue;
        History candidate = best_;
        candidate.steps[i].dice[die] = 0;
        (void)accept(candidate);
      }
    }
  }

  const Area& area_;
  History best_;
  const std::string& oracle_;
  unsigned tries_;
  const std::function<bool()>& may_go_on_;
};

}  // namespace

History shrink(const Area& area, History history, const std::string& oracle, unsigned tries,
               const std::function<bool()>& may_go_on) {
  return Shrinker(area, std::move(history), oracle, tries, may_go_on).shrink();
}

}  // namespace spark::histories
