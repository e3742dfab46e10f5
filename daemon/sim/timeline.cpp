#include "daemon/sim/timeline.hpp"

#include <signal.h>

#include <utility>

#include "daemon/token.hpp"

namespace spark::sim {

Timeline::Timeline(boost::asio::any_io_executor executor, Scenario scenario,
                   std::function<void(const Event&)> apply)
    : scenario_(std::move(scenario)), apply_(std::move(apply)), steps_(executor, SIGUSR1), timer_(executor) {}

boost::asio::awaitable<bool> Timeline::wait_for(const Event& event) {
  if (!event.after) {
    const auto [error, number] = co_await steps_.async_wait(kToken);
    co_return !error;
  }
  timer_.expires_after(*event.after);
  co_return co_await timer_.wait();
}

boost::asio::awaitable<void> Timeline::run() {
  do {
    for (const Event& event : scenario_.events) {
      if (!co_await wait_for(event)) co_return;
      apply_(event);
    }
  } while (scenario_.repeats && !scenario_.events.empty());
}

void Timeline::stop() {
  boost::system::error_code ignored;
  steps_.cancel(ignored);
  timer_.cancel();
}

}  // namespace spark::sim
