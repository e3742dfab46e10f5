// Lets a few in at once, the others in the order in which they came: hundreds of questions in one moment
// would start as many processes. Who is inside for longer than `patience` counts no more: what waits for a
// target that does not answer holds nobody else up for long.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "base/units.hpp"

namespace spark::workers {

namespace asio = boost::asio;

class ConcurrencyLimiter {
  struct State;
  struct Visit;

 public:
  ConcurrencyLimiter(asio::any_io_executor executor, std::size_t most, Duration patience);

  // Its end makes room for the next.
  class Pass {
   public:
    explicit Pass(std::shared_ptr<Visit> visit) : visit_(std::move(visit)) {}
    Pass(Pass&&) = default;
    Pass& operator=(Pass&&) = delete;
    ~Pass();

   private:
    std::shared_ptr<Visit> visit_;
  };

  asio::awaitable<Pass> enter();
  bool is_crowded() const;

 private:
  std::shared_ptr<State> state_;  // passes may outlive the limiter
};

}  // namespace spark::workers
