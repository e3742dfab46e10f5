#include "csi/turns.hpp"

namespace spark::csi {

Turns::Turn Turns::take(const std::string& volume, SteadyTime deadline, bool is_removal) {
  std::unique_lock lock(mutex_);
  Entry& entry = volumes_[volume];  // the entry is not erased while a call waits for it
  const unsigned removals = is_removal ? 1 : 0;
  ++entry.waiting;
  entry.removals_waiting += removals;
  const bool is_free = changed_.wait_until(lock, deadline, [&] { return !entry.is_taken; });
  --entry.waiting;
  entry.removals_waiting -= removals;
  if (!is_free) return {};
  entry.is_taken = true;
  if (is_removal) told_.erase(volume);
  return {*this, volume};
}

bool Turns::tell_once(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  return told_.insert(volume).second;
}

bool Turns::is_taken(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  return volumes_.contains(volume);
}

void Turns::end(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  const auto entry = volumes_.find(volume);
  entry->second.is_taken = false;
  if (entry->second.waiting == 0) volumes_.erase(entry);
  changed_.notify_all();
}

bool Turns::is_removal_waiting(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  const auto entry = volumes_.find(volume);
  return entry != volumes_.end() && entry->second.removals_waiting > 0;
}

}  // namespace spark::csi
