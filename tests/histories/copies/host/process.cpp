#include "tests/histories/copies/host/process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace spark::histories::copies {

Process::Process(const std::function<void()>& begin) {
  int ends[2] = {-1, -1};
  if (begin && ::pipe(ends) != 0) throw std::runtime_error("no pipe for a process");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (begin) begin();
    ::close_range(3, ~0U, 0);  // files that jobs have open would stay so as long as this process lives
    for (;;) ::pause();
  }
  if (pid_ < 0) throw std::runtime_error("no process");
  if (!begin) return;
  ::close(ends[1]);
  char byte = 0;
  while (::read(ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
}

Process::~Process() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace spark::histories::copies
