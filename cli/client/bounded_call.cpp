#include "cli/client/bounded_call.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"

namespace spark::cli {
namespace {

// In a process group of its own: ^C ends the parent at once, while the work still removes its objects in the
// kernel, at most until the alarm.
[[noreturn]] void answer_and_exit(int fd, Duration deadline,
                                  const std::function<Result<json::object>()>& work) {
  ::setpgid(0, 0);
  ::alarm(static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(deadline).count()) + 1);
  const Result<json::object> result = work();
  json::object wire;
  if (result) {
    wire["result"] = *result;
  } else {
    wire["error"] = to_json(result.error());
  }
  (void)write_all(fd, json::serialize(wire));
  ::_exit(0);  // not exit(): the parent's buffers and handlers are not ours
}

// The child's output until it closed its end; no value past the deadline.
std::optional<std::string> read_until_closed(int fd, Duration deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<Duration>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return text;
  }
}

}  // namespace

Result<json::object> call_bounded(Duration deadline, const std::function<Result<json::object>()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "starting a child process");
  if (child == 0) answer_and_exit(theirs.get(), deadline, work);
  theirs.reset();
  const auto text = read_until_closed(ours.get(), deadline);
  if (!text) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, WNOHANG);
    return fail(Errc::TimedOut, "no answer within " + format_duration(deadline));
  }
  ::waitpid(child, nullptr, 0);
  auto wire = parse_json_object(*text);
  if (!wire) return fail(Errc::Failed, "the child process ended without an answer");
  if (const json::object* error = get_object(*wire, "error")) return fail(error_from_json(*error));
  const json::object* result = get_object(*wire, "result");
  return result != nullptr ? *result : json::object();
}

}  // namespace spark::cli
