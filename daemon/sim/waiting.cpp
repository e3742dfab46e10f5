#include "daemon/sim/waiting.hpp"

#include <boost/asio/this_coro.hpp>

#include "daemon/timer.hpp"

namespace spark::sim {
namespace {

constexpr Duration kLook{50};       // between checks whether a call still hangs
constexpr Duration kDeadline{500};  // of a read without an answer: shorter than for real workers

}  // namespace

asio::awaitable<void> wait(Duration duration) {
  Timer timer(co_await asio::this_coro::executor);
  timer.expires_after(duration);
  co_await timer.wait();
}

asio::awaitable<void> wait_for(const Calls& calls, Duration pace) {
  co_await wait(pace);
  while (calls == Calls::Hang) co_await wait(kLook);
}

asio::awaitable<Result<>> wait_for_read(const Storage& storage, bool is_live) {
  const bool has_answer = is_live && storage.latency && *storage.latency < kDeadline;
  co_await wait(has_answer ? *storage.latency : kDeadline);
  const std::string name = storage.device.empty() ? storage.source : "/dev/" + storage.device;
  if (!has_answer) co_return fail(Errc::TimedOut, "reading " + name + ": no answer in time");
  co_return Result<>{};
}

}  // namespace spark::sim
