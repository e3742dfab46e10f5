#include "bench/fio/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/child.hpp"
#include "base/file.hpp"

namespace spark::bench {
namespace {

using SteadyPoint = std::chrono::steady_clock::time_point;

constexpr Duration kStopCheck{200};
constexpr Duration kKillGrace{3000};

bool is_set(const StopFlag* stop) {
  return stop != nullptr && stop->load();
}

// Time in ms for poll() until the next check of the stop flag and the deadline.
int next_look(SteadyPoint end) {
  const auto left = std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, Duration(0), kStopCheck).count());
}

bool has_ended(int pidfd, Duration wait) {
  const SteadyPoint end = std::chrono::steady_clock::now() + wait;
  pollfd polled{pidfd, POLLIN, 0};
  for (;;) {
    if (::poll(&polled, 1, next_look(end)) == 1) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
  }
}

// Reaps the child within `wait`. Returns its status, or no value if it still runs.
std::optional<int> reap(pid_t pid, int pidfd, Duration wait) {
  if (!has_ended(pidfd, wait)) return std::nullopt;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_status_of(status);
}

}  // namespace

Result<FioEnd> run_fio(const FioRun& run) {
  ChildOptions options;
  options.pipe_stderr = true;
  auto child = spawn(run.command, options);
  if (!child) {
    Error error = std::move(child.error());
    if (error.kind == Errc::NotFound) error.hint = "install fio (apt install fio)";
    return fail(std::move(error));
  }
  FioEnd end;
  FioStream stream;
  std::string out, errors;
  const SteadyPoint last_moment = std::chrono::steady_clock::now() + run.deadline;
  while (child->out || child->err) {
    end.stopped = is_set(run.stop);
    end.timed_out = !end.stopped && std::chrono::steady_clock::now() >= last_moment;
    if (end.stopped || end.timed_out) break;
    std::array<pollfd, 2> polled = {pollfd{child->out.get(), POLLIN, 0}, pollfd{child->err.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), next_look(last_moment)) <= 0) continue;
    if (polled[0].revents != 0) drain(child->out, out);
    if (polled[1].revents != 0) drain(child->err, errors);
    for (json::object& object : stream.feed(out)) {
      if (run.on_status) run.on_status(object);
      end.last = std::move(object);
    }
    out.clear();
  }
  if (end.stopped || end.timed_out) ::kill(-child->pid, SIGKILL);
  auto status = reap(child->pid, child->pidfd.get(), kKillGrace);
  if (!status && !end.stopped) {
    // Its outputs are closed but it has not ended: some of its threads hang in the kernel.
    end.timed_out = true;
    ::kill(-child->pid, SIGKILL);
    status = reap(child->pid, child->pidfd.get(), kKillGrace);
  }
  end.abandoned = !status;
  end.exit_status = status.value_or(128 + SIGKILL);
  end.cut = stream.is_inside_object();
  end.words = stream.noise() + "\n" + errors;
  return end;
}

Result<json::value> run_apart(const ApartOptions& options, const std::function<Result<json::value>()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, options.doing + ": making a pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, options.doing + ": starting a helper process");
  if (pid == 0) {
    ::setpgid(0, 0);  // a ^C at the terminal reaches only the parent
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    answer_and_exit(write_end.get(), work());
  }
  write_end.reset();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::string answer;
  const SteadyPoint last_moment = std::chrono::steady_clock::now() + options.deadline;
  bool stopped = false;
  bool late = false;
  while (read_end) {
    stopped = is_set(options.stop);
    late = std::chrono::steady_clock::now() >= last_moment;
    if (stopped || late) break;
    pollfd polled{read_end.get(), POLLIN, 0};
    if (::poll(&polled, 1, next_look(last_moment)) > 0) drain(read_end, answer);
    if (options.on_wait) options.on_wait();
  }
  if (stopped || late) ::kill(pid, SIGKILL);
  (void)reap(pid, pidfd.get(), kKillGrace);
  if (stopped) return fail(Errc::Cancelled, options.doing + ": interrupted");
  if (late) {
    return fail(Errc::TimedOut, options.doing + ": no answer within " + format_duration(options.deadline),
                "check the mount, its network and its target, then run the benchmark again");
  }
  return answer_in(answer, options.doing + ": the helper process died");
}

}  // namespace spark::bench
