#include "cli/foreground.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::cli {
namespace {

constexpr unsigned kFirstOwn = 3;  // descriptor behind the standard ones

// Returns only if that failed, with errno set.
void execute(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
}

// All descriptors of this process but the standard ones and these two, which are none of those: a lock, or a
// pipe that is read to its end, was inherited for the command alone.
void close_all_but(int one, int other) {
  const auto low = static_cast<unsigned>(std::min(one, other)),
             high = static_cast<unsigned>(std::max(one, other));
  if (low > kFirstOwn) ::close_range(kFirstOwn, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0U, 0);
}

// In a session of its own: signals for the command's process group or terminal are not for this process. It
// keeps stderr alone, since a reader of the command's output waits for the end of all its writers. `failed`
// counts the commands that could not be started.
[[noreturn]] void wait_and_run(int command, int failed, const std::function<void()>& afterwards) {
  ::setsid();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  close_all_but(command, failed);
  pollfd end{command, POLLIN, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  std::uint64_t count = 0;
  if (::read(failed, &count, sizeof count) < 0) afterwards();
  ::_exit(0);
}

// Above the standard descriptors, which may be closed: a new one would get the number of one of them.
UniqueFd moved_up(UniqueFd fd) {
  return fd ? UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwn)) : std::move(fd);
}

// A grandchild: the command must not find a child that it has not started. Returns where to note that the
// command could not be started.
Result<UniqueFd> run_after_this_process(const std::function<void()>& afterwards) {
  const UniqueFd self = moved_up(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))));
  UniqueFd failed = moved_up(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  const pid_t child = self && failed ? ::fork() : -1;
  if (child < 0) return fail_errno(errno, "starting the process that waits for the command's end");
  if (child == 0) {
    if (::fork() == 0) wait_and_run(self.get(), failed.get(), afterwards);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return failed;
}

}  // namespace

Result<int> become(const std::vector<std::string>& command, const Environment& more,
                   const std::function<void()>& afterwards) {
  for (const auto& [name, value] : more) {
    if (::setenv(name.c_str(), value.c_str(), 1) != 0) return fail_errno(errno, "setting " + printable(name));
  }
  UniqueFd failed;
  if (afterwards) {
    auto waits = run_after_this_process(afterwards);
    if (!waits) return waits.take_error();
    failed = std::move(*waits);
  }
  execute(command);
  const int number = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = failed ? ::write(failed.get(), &one, sizeof one) : 0;
  return fail_errno(number, "starting " + printable(command.front()));
}

void end_by_interrupt() {
  const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (terminal && ::tcgetpgrp(terminal.get()) == ::getpgrp()) ::raise(SIGINT);
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
