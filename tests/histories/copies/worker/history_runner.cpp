#include "tests/histories/copies/worker/history_runner.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "tests/histories/copies/worker/simulated_system.hpp"

namespace spark::histories::copies {
namespace {

using std::chrono::milliseconds;

// From a call until its worker works, and from its end until the daemon has its answer.
constexpr milliseconds kSoon{40}, kLate{3'000};
constexpr milliseconds kHeldUp{45'000};

}  // namespace

struct HistoryRunner::Running {
  Running(asio::any_io_executor executor, workers::Call its_call)
      : call(std::move(its_call)), timer(std::move(executor)) {}

  workers::Call call;
  Timer timer;
  std::optional<Worker> worker;
  std::optional<SteadyTime> end;  // its deadline
  bool is_cancelled = false;
  json::object progress;  // the last one

  bool is_late(SteadyTime now) const { return end && now >= *end; }
};

void show_time(const VirtualTime& time) {
  using std::chrono::nanoseconds;
  simulated().wall_ns = std::chrono::duration_cast<nanoseconds>(time.wall().time_since_epoch()).count();
  simulated().steady_ns = std::chrono::duration_cast<nanoseconds>(time.now().time_since_epoch()).count();
}

Fault HistoryRunner::take_fault(const std::string& verb) {
  const auto found = std::ranges::find(fate_.planned, verb, &PlannedFault::verb);
  if (found == fate_.planned.end()) return {};
  const Fault fault = found->fault;
  fate_.planned.erase(found);
  ++fate_.faulty;
  if (verb == "lease") ++fate_.faulty_leases;
  return fault;
}

asio::awaitable<void> HistoryRunner::wait(RunningPtr running, Duration time) {
  SteadyTime until = time_.now() + time;
  if (running->end) until = std::min(until, *running->end);
  running->timer.expires_at(until);
  co_await running->timer.wait();
}

asio::awaitable<Result<json::object>> HistoryRunner::run(workers::Call call,
                                                         workers::Cancellation cancellation) {
  const std::string what = call.verb + " " + call.subject;
  if (cancellation.is_asked()) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (call.verb == "find-views") co_return json::object{};  // no history has a live view
  const auto running = std::make_shared<Running>(executor_, std::move(call));
  if (running->call.deadline) running->end = time_.now() + *running->call.deadline;
  // Weak: the caller's task has the cancellation, and the call has the task.
  cancellation.set_kill([weak = std::weak_ptr(running)] {
    const auto its = weak.lock();
    if (!its) return;
    its->is_cancelled = true;
    its->timer.cancel();
  });
  ++counts_.started;
  ++counts_.running;
  auto answer = co_await converse(running);
  --counts_.running;
  cancellation.set_kill({});
  running->worker.reset();
  if (running->is_cancelled) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (running->is_late(time_.now())) {
    ++counts_.timed_out;
    co_return fail(Errc::TimedOut, what + " did not end within " + format_duration(*running->call.deadline));
  }
  co_return answer;
}

asio::awaitable<Result<json::object>> HistoryRunner::converse(RunningPtr running) {
  const workers::Call& call = running->call;
  const bool is_slow = fate_.dice() % 8 == 0;
  const Duration before = fate_.below(is_slow ? kLate : kSoon);
  const Duration after = fate_.below(fate_.dice() % 8 == 0 ? kLate : kSoon);
  co_await wait(running, before);
  if (running->is_cancelled || running->is_late(time_.now())) co_return json::object{};
  const Fault fault = take_fault(call.verb);
  const bool is_faulty = fault.kind != Fault::Kind::None;
  show_time(time_);
  running->worker.emplace(Assignment{call.verb, call.request, fault});
  if (call.on_start) call.on_start(simulated().daemon);
  const auto note = [running](const json::object& progress) {
    running->progress = progress;
    if (running->call.on_progress) running->call.on_progress(progress);
  };
  for (;;) {
    show_time(time_);
    if (is_faulty) fate_.last_fault = time_.now();
    Stop stop = running->worker->go_on(note);
    if (!stop.crash.empty()) fate_.crashed(call.verb, stop.crash);
    if (stop.kind == Stop::Kind::Answered) {
      co_await wait(running, after);
      co_return std::move(stop.answer);
    }
    if (stop.kind == Stop::Kind::Died) {
      if (fault.kind == Fault::Kind::Kill) fate_.tell(call.verb, in_words(fault));
      co_await wait(running, after);
      co_return fail(Errc::Failed,
                     "the worker for " + call.verb + " " + call.subject + " ended without an answer");
    }
    Duration pause = std::chrono::ceil<Duration>(stop.sleep);
    if (stop.kind == Stop::Kind::HeldUp) {
      pause = fate_.below(kHeldUp);
      if (stop.is_by_state) fate_.state_held_until = std::max(fate_.state_held_until, time_.now() + pause);
      fate_.tell(call.verb, in_words(fault));
    }
    if (stop.kind == Stop::Kind::Hangs) {
      fate_.hangs(call.verb);
      pause = Duration::max() / 4;
    }
    co_await wait(running, pause);
    if (running->is_cancelled || running->is_late(time_.now())) co_return json::object{};
    if (stop.kind == Stop::Kind::Sleeps && !running->progress.empty()) note(running->progress);
    if (running->is_cancelled) co_return json::object{};
  }
}

}  // namespace spark::histories::copies
