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
  explicit State(asio::any_io_executor its_executor)
      : executor(std::move(its_executor)), system(executor), source(source_of(executor)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { disarm(); }

  void disarm() {
    if (ticket) source->drop(*std::exchange(ticket, std::nullopt));
  }
  void arm(SteadyTime time) {
    if (source == nullptr) {
      system.expires_at(time);
      return;
    }
    disarm();
    ++round;
    at = time;
    system.expires_at(SteadyTime::max());
    if (at == SteadyTime::max()) return;
    auto due = [this] {
      ticket.reset();
      fired = round;
      system.cancel();
    };
    ticket = source->call_at(at, std::move(due));
  }
  bool is_due() const { return source != nullptr && at <= source->now(); }

  asio::any_io_executor executor;
  asio::steady_timer system;
  TimeSource* const source;
  SteadyTime at{};
  std::uint64_t round = 1, fired = 0;  // the current setting; the last one whose time has come
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
  state_->disarm();
  state_->system.cancel();
}

asio::awaitable<bool> Timer::wait() {
  const auto state = state_;
  if (state->is_due()) {
    co_await asio::post(state->executor, kToken);
    co_return true;
  }
  const std::uint64_t round = state->round;
  const auto [error] = co_await state->system.async_wait(kToken);
  co_return !error || state->fired >= round;
}

void Timer::then(std::function<void()> work) {
  const auto state = state_;
  if (state->is_due()) {
    asio::post(state->executor, std::move(work));
    return;
  }
  state->system.async_wait(
      [state, round = state->round, work = std::move(work)](boost::system::error_code error) {
        if (!error || state->fired >= round) work();
      });
}

}  // namespace spark
