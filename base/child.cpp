#include "base/child.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/no_sigpipe.hpp"
#include "base/text.hpp"

namespace spark {
namespace {

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Only async-signal-safe calls from here to exec: the parent may have threads.
[[noreturn]] void become(char* const* argv, const ChildOptions& options, pid_t parent, int in, int out,
                         int err, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const bool ready =
      (in < 0 || ::dup2(in, 0) >= 0) && (out < 0 || ::dup2(out, 1) >= 0) && (err < 0 || ::dup2(err, 2) >= 0);
  const bool inherits = options.inherited >= 0;
  // `report` may have the number that the descriptor gets.
  if (inherits) report = ::fcntl(report, F_DUPFD_CLOEXEC, kInherited + 1);
  const bool has_inherited = !inherits || ::dup2(options.inherited, kInherited) >= 0;
  // Descriptors that were inherited, or opened by a library without close-on-exec, end here.
  ::close_range(inherits ? kInherited + 1 : kInherited, ~0u, CLOSE_RANGE_CLOEXEC);
  // dup2() to the same number keeps close-on-exec.
  if (inherits) ::fcntl(kInherited, F_SETFD, 0);
  if (ready && has_inherited) ::execvp(options.program.empty() ? argv[0] : options.program.c_str(), argv);
  const int number = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &number, sizeof number);
  ::_exit(127);
}

}  // namespace

Result<Child> spawn(const std::vector<std::string>& argv, const ChildOptions& options) {
  std::array<Pipe, 3> pipes;
  const std::array wanted = {options.pipe_stdin, true, options.pipe_stderr};
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (!wanted[i]) continue;
    auto made = make_pipe();
    if (!made) return made.take_error();
    pipes[i] = std::move(*made);
  }
  auto report = make_pipe();
  if (!report) return report.take_error();

  const std::string& program = options.program.empty() ? argv[0] : options.program;
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, "starting " + program);
  if (pid == 0) {
    become(arguments.data(), options, parent, pipes[0].read_end.get(), pipes[1].write_end.get(),
           pipes[2].write_end.get(), report->write_end.get());
  }

  report->write_end.reset();
  int number = 0;
  if (::read(report->read_end.get(), &number, sizeof number) == sizeof number) {
    ::waitpid(pid, nullptr, 0);
    return fail_errno(number, "starting " + program);
  }
  Child child;
  child.pid = pid;
  child.pidfd = pidfd_of(pid);
  if (!child.pidfd) {
    const int pidfd_error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return fail_errno(pidfd_error, "watching " + program);
  }
  child.in = std::move(pipes[0].write_end);
  child.out = std::move(pipes[1].read_end);
  child.err = std::move(pipes[2].read_end);
  return child;
}

bool drain(UniqueFd& pipe, std::string& into) {
  char buffer[65536];
  const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
  if (got > 0) into.append(buffer, static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) pipe.reset();
  return static_cast<bool>(pipe);
}

namespace {

// Moves bytes between the child and us until both outputs are closed, or the deadline passes (false).
bool pump(Child& child, std::string_view input, ChildOutput& output,
          std::chrono::steady_clock::time_point end) {
  const NoSigpipe quiet;
  ::fcntl(child.in.get(), F_SETFL, O_NONBLOCK);
  while (child.out || child.err) {
    if (input.empty()) child.in.reset();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 3> polled = {pollfd{child.in.get(), POLLOUT, 0}, pollfd{child.out.get(), POLLIN, 0},
                                    pollfd{child.err.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) <= 0) continue;
    if (polled[0].revents != 0) {
      const ssize_t written = ::write(child.in.get(), input.data(), input.size());
      if (written > 0) input.remove_prefix(static_cast<std::size_t>(written));
      if (written < 0 && errno != EAGAIN && errno != EINTR) input = {};
    }
    if (polled[1].revents != 0) drain(child.out, output.out);
    if (polled[2].revents != 0) drain(child.err, output.err);
  }
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return ::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) == 1;
}

}  // namespace

void kill_and_reap(const Child& child) {
  ::kill(child.pid, SIGKILL);
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  ::poll(&ended, 1, 1000);
  ::waitpid(child.pid, nullptr, WNOHANG);
}

UniqueFd pidfd_of(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Result<ChildOutput> run_child(const std::vector<std::string>& argv, std::chrono::milliseconds deadline,
                              const std::string& input) {
  ChildOptions options;
  options.pipe_stdin = true;
  options.pipe_stderr = true;
  auto child = spawn(argv, options);
  if (!child) return child.take_error();
  ChildOutput output;
  const bool ended = pump(*child, input, output, std::chrono::steady_clock::now() + deadline);
  if (!ended) {
    kill_and_reap(*child);
    return fail(Errc::TimedOut, argv[0] + " did not end within " + std::to_string(deadline.count()) + " ms");
  }
  int status = 0;
  ::waitpid(child->pid, &status, 0);
  output.exit_status = exit_status_of(status);
  return output;
}

int exit_status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace spark
