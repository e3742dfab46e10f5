#include "daemon/workers/process_runner.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "base/child.hpp"
#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::workers {
namespace {

// From SIGKILL until it is abandoned: a process not blocked in the kernel dies within milliseconds.
constexpr std::chrono::seconds kGrace{2};
constexpr std::size_t kLongestLine = 64 << 20;
// An idle worker waits for the next probe; a few serve many volumes, and each is replaced after a while.
constexpr std::chrono::seconds kIdle{30};
constexpr std::size_t kMostIdle = 3;
constexpr unsigned kMostAnswers = 1000;
// Concurrent calls. A healthy target answers within milliseconds; slower calls no longer count against the
// limit.
constexpr std::size_t kMostQuestions = 16;
constexpr std::chrono::seconds kPatience{1};

// They write to /dev/nvme-fabrics. The kernel makes one connection at a time (nvmf_dev_mutex): behind one
// that hangs the next would hang too, and can't be killed either.
bool is_connect(std::string_view verb) {
  return verb == "connect" || verb == "discover" || verb == "watch-discovery";
}

using Stream = asio::posix::stream_descriptor;

}  // namespace

struct ProcessRunner::Worker {
  Worker(asio::any_io_executor executor, Child child)
      : pid(child.pid),
        in(executor, child.in.release()),
        out(executor, child.out.release()),
        pidfd(executor, child.pidfd.release()),
        idle(executor) {}

  pid_t pid;
  Stream in, out, pidfd;
  std::string buffered;  // from `out`, not parsed yet
  unsigned answers = 0;
  Timer idle;
};

struct ProcessRunner::Running {
  Running(asio::any_io_executor executor, WorkerPtr its_worker, Call its_call)
      : call(std::move(its_call)), worker(std::move(its_worker)), timer(executor) {}

  Call call;
  WorkerPtr worker;
  Timer timer;  // the deadline, then the grace period after the kill
  bool timed_out = false, cancelled = false, ended = false, given_up = false, was_asked = false;
  int ended_by = 0;      // a signal
  bool is_heard = true;  // as far as known: the request was received, and may have been started

  // Its process group, including mount helpers. A call that ends when asked is asked first.
  void kill() {
    if (ended) return;
    const int signal = is_to_be_asked() ? SIGTERM : SIGKILL;
    was_asked = true;
    ::kill(-worker->pid, signal);
    ::kill(worker->pid, signal);
  }
  bool is_to_be_asked() const { return call.ends_when_asked && !was_asked; }

  void give_up() {
    given_up = true;
    boost::system::error_code ignored;
    worker->in.close(ignored);
    worker->out.close(ignored);
    worker->pidfd.cancel(ignored);
  }

  // The worker has ended: no further kill.
  void end() {
    ended = true;
    timer.cancel();
  }
};

namespace {

// Kills the worker, and abandons it after the grace period.
template <class Running>
void kill_and_expect_the_end(const std::shared_ptr<Running>& running) {
  const bool was_asked_now = running->is_to_be_asked();
  running->kill();
  running->timer.expires_after(kGrace);
  running->timer.then([running, was_asked_now] {
    if (running->ended) return;
    if (was_asked_now) return kill_and_expect_the_end(running);
    running->give_up();
  });
}

template <class Running>
void arm_deadline(const std::shared_ptr<Running>& running) {
  if (!running->call.deadline) return;
  running->timer.expires_after(*running->call.deadline);
  running->timer.then([running] {
    if (running->ended) return;
    running->timed_out = true;
    kill_and_expect_the_end(running);
  });
}

// SIGBUS: of a mapped file that the drive can't read, or has no space for.
tl::unexpected<Error> no_answer(const std::string& what, int signal) {
  const char* name = signal == 0 ? nullptr : ::sigabbrev_np(signal);
  const std::string hint =
      signal == SIGBUS ? "a drive of the cache or of the state folder may be full (`df`) or failing (`dmesg`)"
      : signal == SIGKILL ? "the host's memory may have run out: `journalctl -k -g 'out of memory'`"
                          : "its last words may be in `journalctl -u spark-staged`";
  return fail(Errc::Failed,
              "the worker for " + what + " ended without an answer" +
                  (name == nullptr ? "" : std::string(", by the signal SIG") + name),
              hint);
}

bool has_ended(pid_t worker) {
  siginfo_t info{};
  const int asked = ::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOHANG | WNOWAIT);
  return asked != 0 || info.si_pid == worker;
}

}  // namespace

ProcessRunner::ProcessRunner(asio::any_io_executor executor, std::string program)
    : executor_(std::move(executor)),
      program_(std::move(program)),
      limiter_(executor_, kMostQuestions, kPatience),
      joined_(executor_, kPatience) {}

// An idle worker that was not killed meanwhile, or a new one.
Result<ProcessRunner::WorkerPtr> ProcessRunner::worker_for(const Call& call) {
  while (call.is_short() && !idle_.empty()) {
    WorkerPtr worker = std::move(idle_.back());
    idle_.pop_back();
    worker->idle.cancel();
    if (!has_ended(worker->pid)) return worker;
    let_go(std::move(worker));
  }
  ChildOptions options;
  options.pipe_stdin = true;
  options.program = program_;
  options.inherited = call.descriptor;
  auto child = spawn({"spark-staged", "worker", call.is_short() ? "serve" : call.verb}, options);
  if (!child) return child.take_error();
  ++counts_.started;
  return std::make_shared<Worker>(executor_, std::move(*child));
}

void ProcessRunner::keep(WorkerPtr worker) {
  const std::size_t most = limiter_.is_crowded() ? kMostQuestions : kMostIdle;
  if (idle_.size() >= most || worker->answers >= kMostAnswers || !worker->buffered.empty())
    return let_go(std::move(worker));
  worker->idle.expires_after(kIdle);
  worker->idle.then([this, worker] {
    if (std::erase(idle_, worker) > 0) let_go(worker);
  });
  idle_.push_back(std::move(worker));
}

// The worker ends at the end of its input.
void ProcessRunner::let_go(WorkerPtr worker) {
  auto bury = [](WorkerPtr leaving) -> asio::awaitable<void> {
    boost::system::error_code ignored;
    leaving->in.close(ignored);
    co_await leaving->pidfd.async_wait(Stream::wait_read, kToken);
    ::waitid(P_PID, static_cast<id_t>(leaving->pid), nullptr, WEXITED | WNOHANG);
  };
  launch(executor_, "end of an idle worker", bury(std::move(worker)));
}

asio::awaitable<Result<json::object>> ProcessRunner::run(Call call, Cancellation cancellation) {
  if (call.sharing == Sharing::Answer) {
    std::string key = call.verb + ' ' + json::serialize(call.request);
    call.sharing = Sharing::Worker;
    Joined::Ask once = [this, call] { return run(call); };
    co_return co_await joined_.answer(std::move(key), std::move(once));
  }
  std::optional<ConcurrencyLimiter::Pass> pass;
  if (call.sharing == Sharing::Worker) {
    auto entered = co_await limiter_.enter();
    pass.emplace(std::move(entered));
  }
  co_return co_await run_in_worker(std::move(call), cancellation);
}

asio::awaitable<Result<json::object>> ProcessRunner::run_in_worker(Call call, Cancellation cancellation) {
  const std::string what = call.verb + (call.subject.empty() ? "" : " of " + call.subject);
  if (cancellation.is_asked()) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (is_connect(call.verb) && abandoned_.contains(call.subject)) {
    co_return fail(Errc::Unavailable, what + " waits until an earlier worker, stuck in the kernel, has ended",
                   "`dmesg` may show the cause");
  }
  auto worker = worker_for(call);
  if (!worker) co_return fail_with(std::move(worker.error()), "starting a worker to " + what);

  auto running = std::make_shared<Running>(executor_, std::move(*worker), std::move(call));
  ++counts_.running;
  cancellation.set_kill([weak = std::weak_ptr<Running>(running)] {
    if (const auto still = weak.lock(); still && !still->ended) {
      still->cancelled = true;
      kill_and_expect_the_end(still);
    }
  });
  if (running->call.on_start) running->call.on_start(running->worker->pid);
  arm_deadline(running);
  auto answer = co_await converse(running);
  const bool was_killed = running->timed_out || running->cancelled;
  if (running->call.is_short() && answer && !was_killed) {
    running->end();
    ++running->worker->answers;
    keep(running->worker);
  } else {
    co_await reap(running);
  }
  --counts_.running;
  cancellation.set_kill(nullptr);

  if (running->cancelled) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (running->timed_out) {
    ++counts_.timed_out;
    const auto deadline = std::chrono::duration<double>(*running->call.deadline);
    co_return fail(Errc::TimedOut,
                   what + " did not end within " +
                       format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(deadline)) +
                       (running->given_up ? "; its worker is stuck in the kernel and was abandoned" : ""));
  }
  if (!answer && !running->is_heard) {
    auto again = co_await run_in_worker(std::move(running->call), cancellation);
    co_return again;
  }
  if (answer) co_return std::move(*answer);
  co_return no_answer(what, running->ended_by);
}

asio::awaitable<ProcessRunner::Answer> ProcessRunner::converse(std::shared_ptr<Running> running) {
  const Call& call = running->call;
  Worker& worker = *running->worker;
  const json::object line_of_many{{"verb", call.verb}, {"request", call.request}};
  const std::string request =
      call.is_short() ? json::serialize(line_of_many) + "\n" : json::serialize(call.request);
  const auto [unsent, sent] = co_await asio::async_write(worker.in, asio::buffer(request), kToken);
  // If a new worker ends immediately, the next one will too.
  running->is_heard = !unsent || worker.answers == 0;
  boost::system::error_code ignored;
  if (!call.is_short()) worker.in.close(ignored);

  Answer answer;
  while (!answer || !call.is_short()) {
    auto sink = asio::dynamic_buffer(worker.buffered, kLongestLine);
    const auto [error, length] = co_await asio::async_read_until(worker.out, sink, '\n', kToken);
    if (error == asio::error::not_found) {  // it would wait for a reader of the rest
      answer = fail(Errc::Failed, "the worker for " + call.verb + " sent a line that is too long");
      running->was_asked = true;
      running->kill();
    }
    if (error) break;
    auto line = parse_json_object(std::string_view(worker.buffered).substr(0, length));
    worker.buffered.erase(0, length);
    if (!line) {
      answer = fail_with(std::move(line.error()), "understanding the worker");
      continue;
    }
    if (const json::object* progress = get_object(*line, "progress")) {
      if (call.on_progress) call.on_progress(*progress);
    } else if (const json::object* result = get_object(*line, "result")) {
      answer = *result;
    } else if (const json::object* error_object = get_object(*line, "error")) {
      answer = fail(error_from_json(*error_object));
    }
  }
  co_return answer;
}

asio::awaitable<void> ProcessRunner::reap(std::shared_ptr<Running> running) {
  // Its output has ended, and so does the worker, unless one of its threads is stuck in the kernel.
  if (running->call.ends_when_asked && !running->cancelled && !running->timed_out) {
    running->timer.expires_after(kGrace);
    running->timer.then([running] {
      if (!running->ended) running->give_up();
    });
  }
  // If it was abandoned while its output was still read, nothing would end a wait that starts now.
  if (!running->given_up) co_await running->worker->pidfd.async_wait(Stream::wait_read, kToken);
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(running->worker->pid), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid == running->worker->pid) {
    running->ended_by = info.si_code == CLD_EXITED ? 0 : info.si_status;
    running->end();
    co_return;
  }
  // Stuck in the kernel. It still has to be reaped, however long that takes.
  abandoned_.insert(running->call.subject);
  ++counts_.abandoned;
  log::warning("worker " + std::to_string(running->worker->pid) + " (" + running->call.verb + " of " +
               running->call.subject + ") is stuck in the kernel and was abandoned; continuing");
  auto wait_for_end = [](ProcessRunner& runner, std::shared_ptr<Running> stuck) -> asio::awaitable<void> {
    co_await stuck->worker->pidfd.async_wait(Stream::wait_read, kToken);
    ::waitid(P_PID, static_cast<id_t>(stuck->worker->pid), nullptr, WEXITED | WNOHANG);
    stuck->ended = true;
    runner.abandoned_.erase(runner.abandoned_.find(stuck->call.subject));
    log::info("worker " + std::to_string(stuck->worker->pid) + ", abandoned earlier, has ended");
  };
  launch(executor_, "end of a stuck worker", wait_for_end(*this, running));
}

}  // namespace spark::workers
