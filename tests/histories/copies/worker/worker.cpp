#include "tests/histories/copies/worker/worker.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/threads.hpp"
#include "tests/histories/copies/worker/simulated_system.hpp"
#include "tests/histories/copies/worker/verb_table.hpp"

namespace spark::histories::copies {
namespace {

// Milliseconds of real time without a word. Work takes a few, but `make check` runs it at the lowest
// priority.
constexpr int kHangs = 600'000;
// Seconds of CPU time: one that goes round in circles is no quicker on an idle computer.
constexpr rlim_t kSpins = 5;

// What a worker needs to know when it goes on.
struct Now {
  std::int64_t wall_ns, steady_ns;
};

void say(int channel, const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  (void)!::write(channel, text.data(), text.size());
}

void wait_for_turn(int channel) {
  Now now{};
  if (::read(channel, &now, sizeof now) != sizeof now) ::_exit(1);
  simulated().wall_ns = now.wall_ns;
  simulated().steady_ns = std::max(simulated().steady_ns, now.steady_ns);
}

// Progress depends on nothing but the work: the measured rates are left out.
void tell_progress(int channel, json::object progress) {
  for (const char* key : {"seconds", "bytes_per_second", "eta_s", "bottleneck"}) {
    if (progress.contains(key)) progress[key] = key == std::string_view("bottleneck") ? json::value("") : 0;
  }
  say(channel, {{"progress", std::move(progress)}});
}

[[noreturn]] void work(int channel, const Assignment& assignment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit cpu{kSpins, 2 * kSpins};
  (void)::setrlimit(RLIMIT_CPU, &cpu);
  wait_for_turn(channel);
  simulated().sleep = [channel](std::int64_t ns) {
    say(channel, {{"sleep", ns}});
    wait_for_turn(channel);
  };
  const auto pause = [channel](bool is_by_state) {
    say(channel, {{"held_up", is_by_state}});
    wait_for_turn(channel);
  };
  if (assignment.fault.kind != Fault::Kind::None) {
    if (const std::string why = arm(assignment.fault, pause); !why.empty()) ::_exit(3);
  }
  const auto answer = no_throw([&] {
    const auto request = parse_json_object(json::serialize(assignment.request));  // as a worker gets it
    if (!request) return Result<json::object>(fail(request.error()));
    return verb_called(assignment.verb)(
        *request, [channel](const json::object& progress) { tell_progress(channel, progress); });
  });
  say(channel, answer ? json::object{{"result", *answer}} : json::object{{"error", to_json(answer.error())}});
  ::_exit(0);
}

std::string ended_by(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Worker::Worker(const Assignment& assignment) : fault_(assignment.fault.kind) {
  if (verb_called(assignment.verb) == nullptr)
    throw std::runtime_error("no verb '" + assignment.verb + "' in this history");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket pair for a worker");
  channel_.reset(ends[0]);
  const UniqueFd other(ends[1]);
  simulated().worker_namespace = simulated().namespace_for_workers();
  pid_ = ::fork();
  if (pid_ == 0) {
    channel_.reset();
    work(other.get(), assignment);
  }
  if (pid_ < 0) throw std::runtime_error("no process for a worker");
}

Worker::~Worker() {
  kill();
}

void Worker::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  end();
}

int Worker::end() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

std::optional<std::string> Worker::read_line() {
  for (;;) {
    if (const std::size_t at = buffered_.find('\n'); at != std::string::npos) {
      std::string line = buffered_.substr(0, at);
      buffered_.erase(0, at + 1);
      return line;
    }
    pollfd ready{channel_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kHangs) == 0) {
      hangs_ = true;
      return std::nullopt;
    }
    char block[4096];
    const ssize_t got = ::read(channel_.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    buffered_.append(block, static_cast<std::size_t>(got));
  }
}

Stop Worker::go_on(const std::function<void(const json::object&)>& progress) {
  const Now now{simulated().wall_ns, simulated().steady_ns};
  Stop stop;
  (void)::send(channel_.get(), &now, sizeof now, MSG_NOSIGNAL);  // if it has ended, reading tells
  while (const auto line = read_line()) {
    const auto said = parse_json_object(*line);
    if (!said) continue;  // cut off by its death
    if (const json::object* moved = get_object(*said, "progress")) {
      if (progress) progress(*moved);
    } else if (const auto sleep = get_int(*said, "sleep")) {
      stop.kind = Stop::Kind::Sleeps;
      stop.sleep = std::chrono::nanoseconds(*sleep);
      return stop;
    } else if (const auto is_by_state = get_bool(*said, "held_up")) {
      stop.kind = Stop::Kind::HeldUp;
      stop.is_by_state = *is_by_state;
      return stop;
    } else {
      const json::object* result = get_object(*said, "result");
      const json::object* error = get_object(*said, "error");
      stop.kind = Stop::Kind::Answered;
      stop.answer = result != nullptr ? Result<json::object>(*result)
                                      : fail(error != nullptr ? error_from_json(*error) : Error{});
      if (const int status = end(); status != 0) stop.crash = "it answered, and then " + ended_by(status);
      return stop;
    }
  }
  if (hangs_) {
    stop.kind = Stop::Kind::Hangs;
    kill();
    return stop;
  }
  const int status = pid_ > 0 ? end() : 0;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    stop.kind = Stop::Kind::Hangs;
    return stop;
  }
  const bool is_planned = fault_ == Fault::Kind::Kill && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (!is_planned) stop.crash = "it did not answer, and " + ended_by(status);
  return stop;
}

}  // namespace spark::histories::copies
