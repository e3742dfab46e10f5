// The end of a work of several threads because one part of it has failed.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

namespace spark {

// Owned by the work. Every part that waits for others registers how it is woken, so that nothing waits for a
// thread that has gone.
class RunEnd {
 public:
  bool has_failed() const { return failed_; }
  // Call without the lock that a registered function takes.
  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    for (const auto& wake : wakes_) wake();
  }

  // As long as it exists, fail() calls the function, from any thread.
  class Waker {
   public:
    Waker(RunEnd& end, std::function<void()> wake) : end_(end) {
      const std::scoped_lock lock(end_.mutex_);
      at_ = end_.wakes_.insert(end_.wakes_.end(), std::move(wake));
    }
    ~Waker() {
      const std::scoped_lock lock(end_.mutex_);
      end_.wakes_.erase(at_);
    }
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;

   private:
    RunEnd& end_;
    std::list<std::function<void()>>::iterator at_;
  };

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::list<std::function<void()>> wakes_;
};

}  // namespace spark
