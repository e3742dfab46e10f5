// Limits the threads of this process. RLIMIT_NPROC and pids.max have the same effect, but root's tests can't
// use them.
#pragma once

#include <atomic>

namespace spark {

// During its lifetime, only this many more threads can be created; then pthread_create fails with EAGAIN.
// Only one at a time.
class ThreadLimit {
 public:
  explicit ThreadLimit(int more);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  static int refused();  // since the limit was set
};

}  // namespace spark
