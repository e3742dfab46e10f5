#include "daemon/workers/runner.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/child.hpp"
#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::workers {
namespace {

// From SIGKILL to giving up: a process that is not in the kernel dies within milliseconds.
constexpr std::chrono::seconds kGrace{2};
constexpr std::size_t kLongestLine = 64 << 20;

using Stream = asio::posix::stream_descriptor;

}  // namespace

struct Runner::Running {
  Running(asio::any_io_executor executor, Child child, Call its_call)
      : call(std::move(its_call)),
        pid(child.pid),
        in(executor, child.in.release()),
        out(executor, child.out.release()),
        pidfd(executor, child.pidfd.release()),
        timer(executor) {}

  Call call;
  pid_t pid;
  Stream in, out, pidfd;
  asio::steady_timer timer;  // the deadline, then the grace after the kill
  bool timed_out = false, cancelled = false, ended = false, given_up = false;

  // Its process group dies with it: mount helpers too.
  void kill() {
    if (ended) return;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  void give_up() {
    given_up = true;
    boost::system::error_code ignored;
    in.close(ignored);
    out.close(ignored);
    pidfd.cancel(ignored);
  }
};

namespace {

// Arms the timer; when it fires, kills, and after the grace gives up.
template <class Running>
void kill_and_expect_the_end(const std::shared_ptr<Running>& running) {
  running->kill();
  running->timer.expires_after(kGrace);
  running->timer.async_wait([running](boost::system::error_code error) {
    if (!error && !running->ended) running->give_up();
  });
}

template <class Running>
void arm_deadline(const std::shared_ptr<Running>& running) {
  if (!running->call.deadline) return;
  running->timer.expires_after(*running->call.deadline);
  running->timer.async_wait([running](boost::system::error_code error) {
    if (error || running->ended) return;
    running->timed_out = true;
    kill_and_expect_the_end(running);
  });
}

}  // namespace

void Cancellation::cancel() {
  state_->asked = true;
  if (state_->kill) state_->kill();
}

Runner::Runner(asio::any_io_executor executor, std::string program)
    : executor_(std::move(executor)), program_(std::move(program)) {}

asio::awaitable<Result<json::object>> Runner::run(Call call, Cancellation cancellation) {
  const std::string what = call.verb + (call.subject.empty() ? "" : " of " + call.subject);
  if (cancellation.state_->asked) co_return fail(Errc::Cancelled, what + " was cancelled");

  ChildOptions options;
  options.pipe_stdin = true;
  options.program = program_;
  auto child = spawn({"spark-staged", "worker", call.verb}, options);
  if (!child) co_return fail_with(std::move(child.error()), "starting a worker to " + what);

  auto running = std::make_shared<Running>(executor_, std::move(*child), std::move(call));
  ++counts_.started;
  ++counts_.running;
  cancellation.state_->kill = [weak = std::weak_ptr<Running>(running)] {
    if (const auto still = weak.lock(); still && !still->ended) {
      still->cancelled = true;
      kill_and_expect_the_end(still);
    }
  };
  if (running->call.on_start) running->call.on_start(running->pid);
  arm_deadline(running);
  auto answer = co_await converse(running);
  co_await reap(running);
  --counts_.running;
  cancellation.state_->kill = nullptr;

  if (running->cancelled) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (running->timed_out) {
    ++counts_.timed_out;
    const auto deadline = std::chrono::duration<double>(*running->call.deadline);
    co_return fail(Errc::TimedOut,
                   what + " did not end within " +
                       format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(deadline)) +
                       (running->given_up ? "; its worker is stuck in the kernel and was left behind" : ""));
  }
  co_return answer;
}

asio::awaitable<Result<json::object>> Runner::converse(std::shared_ptr<Running> running) {
  const std::string request = json::serialize(running->call.request);
  co_await asio::async_write(running->in, asio::buffer(request), kToken);
  boost::system::error_code ignored;
  running->in.close(ignored);

  std::optional<Result<json::object>> answer;
  std::string buffered;
  for (;;) {
    auto sink = asio::dynamic_buffer(buffered, kLongestLine);
    const auto [error, length] = co_await asio::async_read_until(running->out, sink, '\n', kToken);
    if (error) break;
    auto line = parse_json_object(std::string_view(buffered).substr(0, length));
    buffered.erase(0, length);
    if (!line) {
      answer = fail_with(std::move(line.error()), "understanding the worker");
      continue;
    }
    if (const json::object* progress = get_object(*line, "progress")) {
      if (running->call.on_progress) running->call.on_progress(*progress);
    } else if (const json::object* result = get_object(*line, "result")) {
      answer = *result;
    } else if (const json::object* error_object = get_object(*line, "error")) {
      answer = tl::unexpected<Error>(error_from_json(*error_object));
    }
  }
  if (answer) co_return std::move(*answer);
  co_return fail(
      Errc::Failed,
      "the worker for " + running->call.verb + " of " + running->call.subject + " ended without an answer",
      "its last words may be in `journalctl -u spark-staged`");
}

asio::awaitable<void> Runner::reap(std::shared_ptr<Running> running) {
  // Given up while it was still listened to: nothing would end a wait that begins now.
  if (!running->given_up) co_await running->pidfd.async_wait(Stream::wait_read, kToken);
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(running->pid), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid == running->pid) {
    running->ended = true;
    running->timer.cancel();
    co_return;
  }
  // Stuck in the kernel. Someone still has to wait for it, however long that takes.
  abandoned_.insert(running->call.subject);
  ++counts_.abandoned;
  log::warning("worker " + std::to_string(running->pid) + " (" + running->call.verb + " of " +
               running->call.subject + ") is stuck in the kernel and was left behind; continuing");
  auto wait_for_end = [](Runner& runner, std::shared_ptr<Running> stuck) -> asio::awaitable<void> {
    co_await stuck->pidfd.async_wait(Stream::wait_read, kToken);
    ::waitid(P_PID, static_cast<id_t>(stuck->pid), nullptr, WEXITED | WNOHANG);
    stuck->ended = true;
    runner.abandoned_.erase(runner.abandoned_.find(stuck->call.subject));
    log::info("worker " + std::to_string(stuck->pid) + ", left behind before, has ended");
  };
  asio::co_spawn(executor_, wait_for_end(*this, running), asio::detached);
}

}  // namespace spark::workers
