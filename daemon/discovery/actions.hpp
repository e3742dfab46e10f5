// The actions of a target's watch: the seam to workers and sysfs, a fake in unit tests.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "nvmetcp/connect/gateway.hpp"

namespace spark::discovery {

namespace asio = boost::asio;

class Actions {
 public:
  virtual ~Actions() = default;

  // As in NvmeGateway; each runs in a worker and ends by its deadline.
  virtual asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal,
                                                             std::string interface) = 0;
  virtual asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) = 0;
  virtual asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal,
                                                             std::string interface) = 0;
  virtual asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem) = 0;

  // These never block.
  virtual Result<std::vector<nvmetcp::Controller>> controllers() = 0;
  // The udev rule that would connect every subsystem if the daemon listened for a change:
  // nvmetcp/discovery/autoconnect.hpp.
  virtual std::string autoconnect_rule() = 0;
};

using MakeActions = std::function<std::unique_ptr<Actions>(const config::Target& target)>;

}  // namespace spark::discovery
