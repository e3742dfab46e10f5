#include "staging/view/confirmations.hpp"

#include <chrono>
#include <utility>

#include "base/threads.hpp"

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kBetweenChecks{5};
constexpr std::chrono::milliseconds kWhileAway{1000};

}  // namespace

Confirmations::~Confirmations() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (confirming_.joinable()) confirming_.join();
}

void Confirmations::begin(ViewMap& map, bool may_check) {
  const std::scoped_lock lock(mutex_);
  map_ = &map;
  unconfirmed_.clear();
  next_.clear();
  if (may_check && is_still_so_ && !confirming_.joinable())
    confirming_ = start_thread([this] { confirm_until_over(); });
}

void Confirmations::show(const UnitRange& units) {
  if (!is_still_so_) return map_->set_here(units);
  {
    const std::scoped_lock lock(mutex_);
    unconfirmed_.push_back(units);
  }
  changed_.notify_all();
}

void Confirmations::withdraw(const UnitRange& units, UnitState to) {
  const std::scoped_lock lock(mutex_);
  const auto is_one_of_them = [&](const UnitRange& one) {
    return one.first >= units.first && one.first < units.first + units.count;
  };
  std::erase_if(unconfirmed_, is_one_of_them);
  std::erase_if(next_, is_one_of_them);
  map_->withdraw(units, to);
}

Result<> Confirmations::check() const {
  return has_other_state_ ? Result<>(fail(*other_state_)) : Result<>();
}

// A writer of the volume marks its superblock before any other write: what was read before a check that finds
// no mark is of one state. Without a thread nothing is confirmed, and readers wait for the publication.
void Confirmations::confirm_until_over() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || !next_.empty() || !unconfirmed_.empty(); });
    if (is_over_) return;
    // Nothing here takes memory: there may be none.
    if (next_.empty()) std::swap(next_, unconfirmed_);
    lock.unlock();
    auto is_so = no_throw([this] { return is_still_so_(); });
    lock.lock();
    const bool is_away = !is_so && is_so.error().is_of_source;
    if (!is_so && !is_away) {
      other_state_ = std::move(is_so.error());
      has_other_state_ = true;
      return;
    }
    if (is_so) {
      for (const UnitRange& range : next_) map_->set_here(range);
      next_.clear();
    }
    changed_.wait_for(lock, is_away ? kWhileAway : kBetweenChecks, [this] { return is_over_; });
  }
}

}  // namespace spark::staging
