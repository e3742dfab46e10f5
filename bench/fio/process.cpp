#include "bench/fio/process.hpp"

#include <poll.h>
#include <signal.h>
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

ApartOptions on_path(std::string doing, Duration deadline, const StopFlag* stop) {
  return {std::move(doing), deadline, stop,
          "check the mount, its network and its target, then run the benchmark again"};
}

}  // namespace spark::bench
