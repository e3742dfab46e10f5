// The events of a simulation, one after the other.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "daemon/sim/scenario.hpp"

namespace spark::sim {

class Timeline {
 public:
  // `apply` makes one event happen. From now on SIGUSR1 is a step, and those that come early are kept.
  Timeline(boost::asio::any_io_executor executor, Scenario scenario, std::function<void(const Event&)> apply);

  boost::asio::awaitable<void> run();
  void stop();

 private:
  // False: stopped.
  boost::asio::awaitable<bool> wait_for(const Event& event);

  Scenario scenario_;
  std::function<void(const Event&)> apply_;
  boost::asio::signal_set steps_;
  boost::asio::steady_timer timer_;
};

}  // namespace spark::sim
