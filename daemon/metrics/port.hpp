// Serves only /metrics on the configured address, without authentication.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/model.hpp"
#include "daemon/timer.hpp"

namespace spark::metrics {

class Port {
 public:
  // `text` returns the current page.
  Port(boost::asio::any_io_executor executor, std::function<std::string()> text, Duration retry);

  // Switches to another address, or to none. An address that can't be bound now (its network card is not up
  // yet, another program has the port) is retried indefinitely, without delaying other work.
  void apply(const config::MetricsSettings& settings);
  void stop();
  // At most a second old: any number of requests costs as much as one a second.
  const std::string& page();
  bool is_open() const { return server_ != nullptr; }

 private:
  void open();
  boost::asio::awaitable<api::Answer> answer(api::Request request);

  boost::asio::any_io_executor executor_;
  std::function<std::string()> text_;
  Duration pause_;
  Timer retry_;
  config::MetricsSettings wanted_;
  bool complained_ = false;  // about wanted_
  std::shared_ptr<api::Server> server_;
  std::string page_;  // made at made_at_
  std::optional<SteadyTime> made_at_;
};

}  // namespace spark::metrics
