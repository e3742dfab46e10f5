// Lets as many threads work as do the most work per second; the others wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"
#include "staging/copy/transfer/thread_search.hpp"

namespace spark::staging {

// Called from any thread. Threads have the numbers 0, 1, …; thread 0 never waits.
class ThreadGate {
 public:
  explicit ThreadGate(ThreadSearch search) : search_(search), allowed_(search.threads()) {}

  bool may_work(unsigned thread) const { return thread < allowed_; }
  // Waits until the thread may work. False: there is no more work.
  bool wait(unsigned thread);
  // A thread has done a batch. `work`: in any unit.
  void did(double work, SteadyTime now);
  // There is no more work: ends all waits.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ThreadSearch search_;
  std::atomic<unsigned> allowed_;
  bool is_closed_ = false;
  unsigned batches_ = 0;  // since allowed_ changed
  double work_ = 0;       // since since_
  SteadyTime since_;
};

}  // namespace spark::staging
