#include "cli/foreground.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::cli {
namespace {

// Returns only if that failed, with errno set.
void execute(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
}

// In a session of its own: signals for the command's process group or terminal are not for this process. It
// keeps stderr alone, since a reader of the command's output waits for the end of all its writers.
[[noreturn]] void wait_and_run(int command, const std::function<void()>& afterwards) {
  ::setsid();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(nothing.get(), STDOUT_FILENO);
  pollfd end{command, POLLIN, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  afterwards();
  ::_exit(0);
}

// A grandchild: the command must not find a child that it has not started.
Result<> run_after_this_process(const std::function<void()>& afterwards) {
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const pid_t child = self ? ::fork() : -1;
  if (child < 0) return fail_errno(errno, "starting the process that waits for the command's end");
  if (child == 0) {
    if (::fork() == 0) wait_and_run(self.get(), afterwards);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return {};
}

}  // namespace

Result<int> become(const std::vector<std::string>& command, const Environment& more,
                   const std::function<void()>& afterwards) {
  for (const auto& [name, value] : more) {
    if (::setenv(name.c_str(), value.c_str(), 1) != 0) return fail_errno(errno, "setting " + printable(name));
  }
  if (afterwards) {
    if (auto waits = run_after_this_process(afterwards); !waits) return waits.take_error();
  }
  execute(command);
  return fail_errno(errno, "starting " + printable(command.front()));
}

Result<int> run_in_foreground(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  UniqueFd report_end(ends[0]), child_end(ends[1]);
  ::signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would take the child's status from us
  const auto on_int = ::signal(SIGINT, SIG_IGN), on_quit = ::signal(SIGQUIT, SIG_IGN);
  const auto restore = [&] { ::signal(SIGINT, on_int), ::signal(SIGQUIT, on_quit); };
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    restore();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) execute(command);
    const int number = errno;
    [[maybe_unused]] const ssize_t told = ::write(child_end.get(), &number, sizeof number);
    ::_exit(127);
  }
  int number = child < 0 ? errno : 0, status = 0;
  child_end.reset();
  while (child > 0 && ::read(report_end.get(), &number, sizeof number) < 0 && errno == EINTR) {
  }
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  restore();
  if (number != 0) return fail_errno(number, "starting " + printable(command.front()));
  return exit_status_of(status);
}

}  // namespace spark::cli
