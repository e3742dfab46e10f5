#include "daemon/timer.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "daemon/token.hpp"

namespace spark {
namespace {

// The time source of one io_context; none means the system's clock.
class FollowedTime final : public asio::execution_context::service {
 public:
  using key_type = FollowedTime;
  inline static asio::execution_context::id id;

  explicit FollowedTime(asio::execution_context& context) : service(context) {}

  TimeSource* source = nullptr;

 private:
  void shutdown() override {}
};

TimeSource* source_of(const asio::any_io_executor& executor) {
  auto& context = asio::query(executor, asio::execution::context);
  return asio::has_service<FollowedTime>(context) ? asio::use_service<FollowedTime>(context).source : nullptr;
}

}  // namespace

void follow(asio::execution_context& context, TimeSource& source) {
  asio::use_service<FollowedTime>(context).source = &source;
}

SteadyTime steady_now(const asio::any_io_executor& executor) {
  const TimeSource* source = source_of(executor);
  return source != nullptr ? source->now() : std::chrono::steady_clock::now();
}

// With a time source, `system` never expires: it is cancelled when the source reaches `at`.
struct Timer::State {
  // What happened to the waits since the timer was set or cancelled last.
  struct Waits {
    bool is_due = false, is_cancelled = false;
  };

  explicit State(asio::any_io_executor its_executor)
      : executor(std::move(its_executor)), system(executor), source(source_of(executor)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { disarm(); }

  void disarm() {
    if (ticket) source->drop(*std::exchange(ticket, std::nullopt));
  }
  // As with the system's clock: what is due is done, and nothing else is any more.
  void end_waits() {
    disarm();
    std::exchange(waits, std::make_shared<Waits>())->is_cancelled = true;
    system.cancel();
  }
  void arm(SteadyTime time) {
    if (source == nullptr) {
      system.expires_at(time);
      return;
    }
    end_waits();
    at = time;
    system.expires_at(SteadyTime::max());
    start();
  }
  // Also for a wait that begins after a cancellation.
  void start() {
    if (ticket || at == SteadyTime::max()) return;
    auto due = [this] {
      ticket.reset();
      waits->is_due = true;
      system.cancel();
    };
    ticket = source->call_at(at, std::move(due));
  }
  bool has_passed() const { return at <= source->now(); }

  asio::any_io_executor executor;
  asio::steady_timer system;
  TimeSource* const source;
  SteadyTime at{};
  std::shared_ptr<Waits> waits = std::make_shared<Waits>();
  std::optional<TimeSource::Ticket> ticket;
};

Timer::Timer(asio::any_io_executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

Timer::~Timer() {
  cancel();
}

void Timer::expires_after(Duration duration) {
  const SteadyTime now = steady_now(state_->executor);
  const bool is_far = duration >= std::chrono::floor<Duration>(SteadyTime::max() - now);
  state_->arm(is_far ? SteadyTime::max() : now + duration);
}

void Timer::expires_at(SteadyTime time) {
  state_->arm(time);
}

void Timer::cancel() {
  if (state_->source != nullptr) {
    state_->end_waits();
  } else {
    state_->system.cancel();
  }
}

asio::awaitable<bool> Timer::wait() {
  const auto state = state_;
  if (state->source == nullptr) {
    const auto [error] = co_await state->system.async_wait(kToken);
    co_return !error;
  }
  const auto waits = state->waits;
  if (state->has_passed()) {
    co_await asio::post(state->executor, kToken);
    co_return !waits->is_cancelled;
  }
  state->start();
  (void)co_await state->system.async_wait(kToken);
  co_return waits->is_due;
}

void Timer::then(std::function<void()> work) {
  const auto state = state_;
  if (state->source == nullptr) {
    state->system.async_wait([state, work = std::move(work)](boost::system::error_code error) {
      if (!error) work();
    });
  } else if (state->has_passed()) {
    asio::post(state->executor, [waits = state->waits, work = std::move(work)] {
      if (!waits->is_cancelled) work();
    });
  } else {
    state->start();
    state->system.async_wait(
        [state, waits = state->waits, work = std::move(work)](boost::system::error_code) {
          if (waits->is_due) work();
        });
  }
}

}  // namespace spark
