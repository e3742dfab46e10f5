// The events of a simulation, in order.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "daemon/sim/scenario.hpp"
#include "daemon/timer.hpp"

namespace spark::sim {

class Timeline {
 public:
  // `apply` performs one event. From now on each SIGUSR1 is a step; early signals are kept.
  Timeline(boost::asio::any_io_executor executor, Scenario scenario, std::function<void(const Event&)> apply);

  boost::asio::awaitable<void> run();
  void stop();

 private:
  // False if stopped.
  boost::asio::awaitable<bool> wait_for(const Event& event);

  Scenario scenario_;
  std::function<void(const Event&)> apply_;
  boost::asio::signal_set steps_;
  Timer timer_;
};

}  // namespace spark::sim
