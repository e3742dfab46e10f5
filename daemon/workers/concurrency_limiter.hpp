// Limits concurrent calls; the others wait in their order of arrival. Without it, hundreds of simultaneous
// calls would start as many processes. A call that is inside for longer than `patience` no longer counts, so
// calls to a target that does not answer do not delay others for long.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
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

  // Its destruction admits the next call.
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
