// Writing to a pipe that may have lost its reader.
#pragma once

#include <signal.h>

namespace spark {

// If a child stops reading, writes fail with EPIPE instead of SIGPIPE ending this process. Applies to the
// calling thread only.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec at_once{};
    // Blocked before: one that is pending may not be of our making, and stays.
    if (sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace spark
