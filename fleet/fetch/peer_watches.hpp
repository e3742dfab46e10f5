// The threads of a run that ask its peers about the set repeatedly.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "base/clock.hpp"
#include "fleet/transport/interrupt.hpp"

namespace spark::fleet {

// The run's mutex guards it, except has_ended() and interrupt().
class PeerWatches {
 public:
  // `awaited`: peers that answer or fail before the run chooses its first unit.
  explicit PeerWatches(std::size_t awaited) : awaited_(awaited) {}

  void first_ended() { --awaited_; }
  bool is_awaiting() const { return awaited_ > 0; }

  void answered(SteadyTime::duration took, SteadyTime now);
  // Time limit of a request. Where answers take long because computers are busy, a peer counts as silent
  // later.
  std::chrono::milliseconds patience() const;

  // Waits until the next request is due, or until end(). The lock is of the run's mutex.
  void pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds interval);
  void end();
  bool has_ended() const { return has_ended_; }
  const Interrupt& interrupt() const { return interrupt_; }  // set by end(), for requests under way

 private:
  std::size_t awaited_;
  std::chrono::milliseconds slowest_{0};  // recent answer
  SteadyTime slowest_at_{};
  std::condition_variable ended_;
  std::atomic<bool> has_ended_{false};
  Interrupt interrupt_;
};

}  // namespace spark::fleet
