// Serialises the calls on a volume. kubelet repeats a call that it no longer waits for, while the driver may
// still be working on the first one.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/clock.hpp"

namespace spark::csi {

class Turns {
 public:
  // Holds a volume until it is destroyed. Its Turns outlive it.
  class Turn {
   public:
    Turn() = default;
    Turn(Turns& turns, std::string volume) : turns_(&turns), volume_(std::move(volume)) {}
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), volume_(std::move(other.volume_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(volume_);
    }
    explicit operator bool() const { return turns_ != nullptr; }
    // True if another call waits to unpublish the volume.
    bool should_end() const { return turns_ != nullptr && turns_->is_removal_waiting(volume_); }

   private:
    Turns* turns_ = nullptr;  // null: another call still has the volume
    std::string volume_;
  };

  // `is_removal` asks the call that has the volume to end.
  Turn take(const std::string& volume, SteadyTime deadline, bool is_removal);
  bool is_taken(const std::string& volume);
  // True for the first call, until the volume is removed.
  bool tell_once(const std::string& volume);

 private:
  struct Entry {
    bool is_taken = false;
    unsigned waiting = 0, removals_waiting = 0;
  };
  void end(const std::string& volume);
  bool is_removal_waiting(const std::string& volume);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> volumes_;  // by ID: volumes in use by a call, or waited for
  std::set<std::string> told_;            // IDs
};

}  // namespace spark::csi
