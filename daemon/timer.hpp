// The daemon's only timer. It follows the system's clock, or the time source of its io_context: virtual time
// in tests/histories.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark {

namespace asio = boost::asio;

// Time that passes only when a test advances it. Used on the thread of the io_contexts that follow it.
class TimeSource {
 public:
  using Ticket = std::uint64_t;

  virtual ~TimeSource() = default;
  virtual SteadyTime now() const = 0;
  // Calls `due` once, when `at` is reached, unless it is dropped before.
  virtual Ticket call_at(SteadyTime at, std::function<void()> due) = 0;
  virtual void drop(Ticket ticket) = 0;  // no effect once `due` was called
};

// All timers of `context` made from now on follow `source`, which outlives them.
void follow(asio::execution_context& context, TimeSource& source);

// The time that timers of `executor` follow.
SteadyTime steady_now(const asio::any_io_executor& executor);

class Timer {
 public:
  explicit Timer(asio::any_io_executor executor);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  // Both end the waits in progress as cancel() does.
  void expires_after(Duration duration);
  void expires_at(SteadyTime time);  // SteadyTime::max(): never
  void cancel();
  // True once the time has come, false if it was cancelled.
  asio::awaitable<bool> wait();
  // Calls `work` once the time has come; never if it was cancelled.
  void then(std::function<void()> work);

 private:
  struct State;
  std::shared_ptr<State> state_;  // also owned by the waits in progress
};

}  // namespace spark
