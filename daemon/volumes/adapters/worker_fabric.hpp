// The fabric, accessed by workers.
#pragma once

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/fabric.hpp"

namespace spark::volumes {

class WorkerFabric final : public Fabric {
 public:
  explicit WorkerFabric(Asker& asker) : asker_(asker) {}

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                          std::string interface) override;
  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override;
  asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) override;
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                             nvmetcp::CutOff cut_off,
                                             std::vector<std::string> leaving) override;
  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override;

 private:
  Asker& asker_;
};

}  // namespace spark::volumes
