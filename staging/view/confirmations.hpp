// Units of a view wait here until the state of their source is confirmed: one check serves all that came
// before it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "staging/view/view_map.hpp"

namespace spark::staging {

// Thread-safe, but for begin().
class Confirmations {
 public:
  // `is_still_so`: see CopyViewer.
  explicit Confirmations(std::function<Result<>()> is_still_so) : is_still_so_(std::move(is_still_so)) {}
  ~Confirmations();
  Confirmations(const Confirmations&) = delete;
  Confirmations& operator=(const Confirmations&) = delete;

  // The map outlives it. `may_check`: else what is shown stays unconfirmed.
  void begin(ViewMap& map, bool may_check);
  void show(const UnitRange& units);
  void withdraw(const UnitRange& units, UnitState to);
  Result<> check() const;  // whether the source is of another state

 private:
  std::function<Result<>()> is_still_so_;
  ViewMap* map_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<UnitRange> unconfirmed_, next_;  // next_: are checked, again while it is not known
  bool is_over_ = false;
  std::optional<Error> other_state_;  // set before has_other_state_, and not changed after it
  std::atomic<bool> has_other_state_{false};
  std::thread confirming_;

  void confirm_until_over();
};

}  // namespace spark::staging
