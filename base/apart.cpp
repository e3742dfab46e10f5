#include "base/apart.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/child.hpp"

namespace spark {
namespace {

constexpr Duration kStopCheck{200};

// Ends this process without its parent's buffers and handlers, which are not its own.
[[noreturn]] void answer_and_exit(int fd, const Result<json::value>& answer) {
  json::object wire;
  if (answer) {
    wire["result"] = *answer;
  } else {
    wire["error"] = to_json(answer.error());
  }
  (void)write_all(fd, json::serialize(wire));
  ::_exit(0);
}

}  // namespace

Result<json::value> run_apart(const ApartOptions& options, const std::function<Result<json::value>()>& work) {
  const std::string doing = options.doing.empty() ? "" : options.doing + ": ";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, doing + "making a pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t parent = ::getpid();
  Child child;
  child.pid = ::fork();
  if (child.pid < 0) return fail_errno(errno, doing + "starting a child process");
  if (child.pid == 0) {
    ::setpgid(0, 0);  // a ^C at the terminal reaches only the parent
    if (options.outlives_parent) {
      ::alarm(static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(options.deadline).count()) + 1);
    } else {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
    }
    answer_and_exit(write_end.get(), work());
  }
  write_end.reset();
  child.pidfd = pidfd_of(child.pid);
  std::string answer;
  const auto end = std::chrono::steady_clock::now() + options.deadline;
  bool stopped = false;
  bool late = false;
  while (read_end) {
    const auto left = std::chrono::ceil<Duration>(end - std::chrono::steady_clock::now());
    stopped = options.stop != nullptr && *options.stop;
    late = left.count() <= 0;
    if (stopped || late) break;
    pollfd polled{read_end.get(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(std::min(left, kStopCheck).count())) > 0) drain(read_end, answer);
    if (options.on_wait) options.on_wait();
  }
  kill_and_reap(child);
  if (stopped) return fail(Errc::Cancelled, doing + "interrupted");
  if (late) {
    return fail(Errc::TimedOut, doing + "no answer within " + format_duration(options.deadline),
                options.hint);
  }
  auto wire = parse_json_object(answer);
  if (!wire) return fail(Errc::Failed, doing + "the child process ended without an answer");
  if (const json::object* error = get_object(*wire, "error")) return fail(error_from_json(*error));
  return (*wire)["result"];
}

}  // namespace spark
