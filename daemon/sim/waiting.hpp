// Simulates the duration of a call.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include "daemon/sim/targets.hpp"
#include "daemon/timer.hpp"

namespace spark::sim {

namespace asio = boost::asio;

inline asio::awaitable<void> wait(Duration duration) {
  Timer timer(co_await asio::this_coro::executor);
  timer.expires_after(duration);
  co_await timer.wait();
}

// Waits for `pace`, and then for as long as such calls hang.
inline asio::awaitable<void> wait_for(const Calls& calls, Duration pace) {
  constexpr Duration kLook{50};
  co_await wait(pace);
  while (calls == Calls::Hang) co_await wait(kLook);
}

// A read of the volume: TimedOut, after a while, if it has no answer. `is_live`: it has a live path.
inline asio::awaitable<Result<>> wait_for_read(const Storage& storage, bool is_live) {
  constexpr Duration kDeadline{500};  // shorter than for real workers
  const bool has_answer = is_live && storage.latency && *storage.latency < kDeadline;
  co_await wait(has_answer ? *storage.latency : kDeadline);
  const std::string name = storage.device.empty() ? storage.source : "/dev/" + storage.device;
  if (!has_answer) co_return fail(Errc::TimedOut, "reading " + name + ": no answer in time");
  co_return Result<>{};
}

}  // namespace spark::sim
