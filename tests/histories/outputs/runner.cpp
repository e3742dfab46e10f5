#include "tests/histories/outputs/runner.hpp"

#include <algorithm>

namespace spark::histories {

Duration HistoryRunner::between(unsigned least_ms, unsigned most_ms) {
  return Duration(least_ms + static_cast<unsigned>(random_() % (most_ms - least_ms + 1)));
}

asio::awaitable<bool> HistoryRunner::pause(RunningPtr running, Duration duration) {
  SteadyTime until = steady_now(executor_) + duration;
  if (running->deadline && *running->deadline < until) {
    until = *running->deadline;
    running->is_late = true;
  }
  running->timer.expires_at(until);
  co_await running->timer.wait();
  if (running->is_cancelled) running->is_late = false;
  co_return !running->is_cancelled && !running->is_late;
}

asio::awaitable<Answer> HistoryRunner::run(workers::Call call, workers::Cancellation cancellation) {
  const std::string what = call.verb + " of " + call.subject;
  if (cancellation.is_asked()) co_return fail(Errc::Cancelled, what + " was cancelled");
  ++counts_.started;
  ++counts_.running;
  const auto running = std::make_shared<Running>(executor_);
  if (call.deadline) running->deadline = steady_now(executor_) + *call.deadline;
  cancellation.set_kill([weak = std::weak_ptr<Running>(running)] {
    if (const auto still = weak.lock()) {
      still->is_cancelled = true;
      still->timer.cancel();
    }
  });
  const bool is_long = call.verb == "stage-out";
  // Some copies take longer than it takes until they are called stalled.
  const Duration before = is_long ? between(100, random_() % 8 == 0 ? 25'000 : 3'000) : between(2, 30);
  // Its rate is limited to almost nothing.
  const bool is_throttled = get_int(call.request, "max_rate").value_or(0) > 0;
  bool goes_on = co_await pause(running, is_throttled ? Duration(3'600'000) : before);
  while (goes_on && hooks_.hangs(call)) goes_on = co_await pause(running, Duration(1'000));
  Answer answer = fail(Errc::Cancelled, what + " was cancelled");
  if (goes_on) {
    answer = hooks_.perform(call);
    goes_on = co_await pause(running, between(1, 20));
  }
  cancellation.set_kill(nullptr);
  --counts_.running;
  if (running->is_cancelled) co_return fail(Errc::Cancelled, what + " was cancelled");
  if (running->is_late) {
    ++counts_.timed_out;
    co_return fail(Errc::TimedOut, what + " did not end in time");
  }
  co_return answer;
}

}  // namespace spark::histories
