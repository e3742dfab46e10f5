// Threads where there may be too few of them: a limit on processes (RLIMIT_NPROC, pids.max) ends no program.
// The only code of ours that makes threads, beside std::async with both of its policies.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/result.hpp"

namespace spark {

// Set from another thread or a signal handler: the code that checks it stops at its next check.
using StopFlag = std::atomic<bool>;
inline const StopFlag kNeverStopped{false};

// Runs work(0) … work(threads - 1), each once: work(0) on the caller's thread, the others beside it. Where
// the system allows no more threads, the rest is not run at all; `work` takes tasks from a common stock until
// there are none, so that any number of threads, down to the caller's own, does all of it. Returns how many
// ran. An exception of `work`, such as std::bad_alloc, ends that thread's part, and is the error once all
// threads have ended. If they wait for each other, `on_throw` must end the wait. It must not throw.
Result<std::size_t> run_in_threads(std::size_t threads, const std::function<void(std::size_t)>& work,
                                   const std::function<void()>& on_throw = {});

// A thread in the background, or none (not joinable) where the system allows no more. `work` must not throw.
std::thread start_thread(std::function<void()> work);

// std::bad_alloc is "Cannot allocate memory", with ENOMEM.
Error error_of(const std::exception_ptr& thrown);

// An exception of `work` becomes an error too, as above. `work` returns a Result.
template <class Work>
std::invoke_result_t<const Work&> no_throw(const Work& work) {
  try {
    return work();
  } catch (...) {
    return fail(error_of(std::current_exception()));
  }
}

// The end of a work of several threads because one part of it has failed.
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
