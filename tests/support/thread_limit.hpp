// A limit on threads for this process, as RLIMIT_NPROC and pids.max set one, which root's tests can't use.
#pragma once

#include <atomic>

namespace spark {

// While it lives, only as many more threads can be made; then pthread_create fails with EAGAIN. One at a
// time.
class ThreadLimit {
 public:
  explicit ThreadLimit(int more);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  static int refused();  // since the limit was set
};

}  // namespace spark
