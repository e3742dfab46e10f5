// /metrics, and nothing else, on the address of the configuration, for whoever reaches it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/model.hpp"

namespace spark::metrics {

class Port {
 public:
  // `text`: the page as it is now.
  Port(boost::asio::any_io_executor executor, std::function<std::string()> text, Duration retry);

  // Takes up another address, or none. One that can't be had now (its network card is not up yet, another
  // program has the port) is tried again for ever, and holds nothing else up.
  void apply(const config::MetricsSettings& settings);
  void stop();
  bool is_open() const { return server_ != nullptr; }

 private:
  void open();
  boost::asio::awaitable<api::Answer> answer(api::Request request) const;

  boost::asio::any_io_executor executor_;
  std::function<std::string()> text_;
  Duration pause_;
  boost::asio::steady_timer retry_;
  config::MetricsSettings wanted_;
  bool complained_ = false;  // of wanted_
  std::shared_ptr<api::Server> server_;
};

}  // namespace spark::metrics
