// The fabric of a simulated host, as used by one volume and by the watch of a target.
#pragma once

#include "daemon/discovery/actions.hpp"
#include "daemon/sim/world.hpp"
#include "daemon/volumes/seams/fabric.hpp"
#include "daemon/volumes/seams/fabric_snapshot.hpp"

namespace spark::sim {

namespace asio = boost::asio;

class SimulatedFabric final : public volumes::Fabric {
 public:
  SimulatedFabric(World& world, std::string volume, Duration pace)
      : world_(world), volume_(std::move(volume)), pace_(pace) {}

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
  World& world_;
  std::string volume_;
  Duration pace_;
};

class SimulatedFabricSnapshot final : public volumes::FabricSnapshot {
 public:
  explicit SimulatedFabricSnapshot(World& world) : world_(world) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override;
  // Keys and encryption are not simulated: every path counts as secured.
  Result<> check_paths_secured(const std::string& subsystem, const nvmetcp::ConnectOptions& options) override;
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override;
  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override;

 private:
  World& world_;
};

class SimulatedDiscovery final : public discovery::Actions {
 public:
  explicit SimulatedDiscovery(World& world) : world_(world) {}

  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal, std::string interface) override;
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) override;
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal, std::string interface) override;
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem) override;
  Result<std::vector<nvmetcp::Controller>> controllers() override { return world_.controllers(); }
  std::string autoconnect_rule() override { return ""; }

 private:
  World& world_;
};

}  // namespace spark::sim
