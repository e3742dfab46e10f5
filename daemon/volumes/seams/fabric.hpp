// The seam to the fabric: discover, connect, disconnect. Each call runs in a worker and ends by its deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/device/smart.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

// The interface for one volume.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                                  std::string interface) = 0;
  virtual asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                               nvmetcp::ConnectOptions options) = 0;
  // The numeric addresses that a portal's name currently resolves to.
  virtual asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) = 0;
  // On the same controller, verified by reading back.
  virtual asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                               nvmetcp::ConnectOptions options) = 0;
  // Makes the kernel search for the controller's namespaces again; they appear a moment later.
  virtual asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) = 0;
  // `leaving`: all controllers that go with it. Refused, when it is about to happen: a device that only these
  // lead to is in use, and `cut_off` does not cover it.
  virtual asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                                     nvmetcp::CutOff cut_off,
                                                     std::vector<std::string> leaving) = 0;
  // The target's report about its drives, requested from a live controller.
  virtual asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) = 0;
};

}  // namespace spark::volumes
