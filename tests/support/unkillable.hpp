// A process that SIGKILL does not end, like one blocked in the kernel: a tracer stops it at its exit.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spark {

// Lasts until it is destroyed, or until this program ends. The tracer is a separate process: a parent that
// traced its child would get the stop instead of the end from waitpid().
class Unkillable {
 public:
  explicit Unkillable(pid_t victim) {
    int begun[2];
    if (::pipe(begun) != 0) return;
    tracer_ = ::fork();
    if (tracer_ == 0) {
      const bool traces = ::ptrace(PTRACE_SEIZE, victim, nullptr, PTRACE_O_TRACEEXIT) == 0;
      (void)!::write(begun[1], traces ? "1" : "0", 1);
      for (;;) ::pause();
    }
    char word = '0';
    works_ = ::read(begun[0], &word, 1) == 1 && word == '1';
    ::close(begun[0]);
    ::close(begun[1]);
  }
  ~Unkillable() {
    if (tracer_ <= 0) return;
    ::kill(tracer_, SIGKILL);
    ::waitpid(tracer_, nullptr, 0);
  }
  Unkillable(const Unkillable&) = delete;
  Unkillable& operator=(const Unkillable&) = delete;

  // False if tracing is not allowed.
  bool works() const { return works_; }

 private:
  pid_t tracer_ = -1;
  bool works_ = false;
};

}  // namespace spark
