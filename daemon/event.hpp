// Wakes all coroutines that wait for a change.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "daemon/token.hpp"

namespace spark {

class Event {
 public:
  explicit Event(boost::asio::any_io_executor executor)
      : never_(std::move(executor), boost::asio::steady_timer::time_point::max()) {}

  // Returns after the next notify(), or when the event is destroyed: a waiter checks what it waits for.
  boost::asio::awaitable<void> wait() { co_await never_.async_wait(kToken); }
  void notify() { never_.cancel(); }

 private:
  boost::asio::steady_timer never_;  // never expires: cancelling it wakes all waiters
};

}  // namespace spark
