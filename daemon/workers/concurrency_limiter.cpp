#include "daemon/workers/concurrency_limiter.hpp"

#include <utility>

#include "daemon/event.hpp"
#include "daemon/timer.hpp"

namespace spark::workers {

struct ConcurrencyLimiter::State {
  asio::any_io_executor executor;
  std::size_t most;
  Duration patience;
  std::size_t inside = 0;
  std::deque<std::shared_ptr<Event>> waiting;  // each is notified when its turn has come

  // The next waiting call, if any, takes the place.
  void make_room() {
    if (waiting.empty()) {
      --inside;
      return;
    }
    waiting.front()->notify();
    waiting.pop_front();
  }
};

struct ConcurrencyLimiter::Visit {
  Visit(std::shared_ptr<State> its_state) : state(std::move(its_state)), timer(state->executor) {}

  void end() {
    if (std::exchange(has_ended, true)) return;
    timer.cancel();
    state->make_room();
  }

  std::shared_ptr<State> state;
  Timer timer;  // patience
  bool has_ended = false;
};

ConcurrencyLimiter::ConcurrencyLimiter(asio::any_io_executor executor, std::size_t most, Duration patience)
    : state_(std::make_shared<State>(State{std::move(executor), most, patience, 0, {}})) {}

ConcurrencyLimiter::Pass::~Pass() {
  if (visit_) visit_->end();
}

bool ConcurrencyLimiter::is_crowded() const {
  return !state_->waiting.empty();
}

asio::awaitable<ConcurrencyLimiter::Pass> ConcurrencyLimiter::enter() {
  const auto state = state_;
  if (state->inside < state->most) {
    ++state->inside;
  } else {
    const auto turn = std::make_shared<Event>(state->executor);
    state->waiting.push_back(turn);
    co_await turn->wait();
  }
  const auto visit = std::make_shared<Visit>(state);
  visit->timer.expires_after(state->patience);
  visit->timer.then([weak = std::weak_ptr<Visit>(visit)] {
    if (const auto still = weak.lock()) still->end();
  });
  co_return Pass(visit);
}

}  // namespace spark::workers
