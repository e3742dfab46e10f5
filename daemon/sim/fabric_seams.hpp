// The fabric of a simulated host, as used by one volume and by the watch of a target.
#pragma once

#include <algorithm>

#include "daemon/discovery/actions.hpp"
#include "daemon/sim/waiting.hpp"
#include "daemon/sim/world.hpp"
#include "daemon/volumes/seams/fabric.hpp"
#include "daemon/volumes/seams/fabric_snapshot.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::sim {

namespace asio = boost::asio;

class SimulatedFabric final : public volumes::Fabric {
 public:
  SimulatedFabric(World& world, std::string volume, Duration pace)
      : world_(world), volume_(std::move(volume)), pace_(pace) {}

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                          std::string /*interface*/) override {
    co_return world_.targets().discover(portal);
  }

  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override {
    co_await wait_for(world_.targets().storage_of(volume_).connects, pace_);
    co_return world_.connect(subsystem, portal, options.interface);
  }

  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override {
    std::vector<nvmetcp::Portal> numeric{Targets::resolve(portal)};
    co_return numeric;
  }

  asio::awaitable<Result<>> set_timers(std::string /*controller*/, std::string /*subsystem*/,
                                       nvmetcp::ConnectOptions /*options*/) override {
    co_return Result<>{};
  }

  asio::awaitable<Result<>> rescan(std::string /*controller*/, std::string /*subsystem*/) override {
    co_return Result<>{};
  }

  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string /*subsystem*/,
                                             nvmetcp::CutOff /*cut_off*/,
                                             std::vector<std::string> /*leaving*/) override {
    co_return world_.disconnect(controller);
  }

  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override {
    co_return fail(Errc::Unsupported, controller + " is simulated, and has no SMART log page");
  }

 private:
  World& world_;
  std::string volume_;
  Duration pace_;
};

class SimulatedFabricSnapshot final : public volumes::FabricSnapshot {
 public:
  explicit SimulatedFabricSnapshot(World& world) : world_(world) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override {
    return nvmetcp::controllers_of(world_.controllers(), subsystem, kHostNqn);
  }

  // Keys and encryption are not simulated: every path counts as secured.
  Result<> check_paths_secured(const std::string& /*subsystem*/,
                               const nvmetcp::ConnectOptions& /*options*/) override {
    return {};
  }

  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override {
    return world_.find_namespace(controllers, nsid);
  }

  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override {
    return world_.subsystem_of(device).map([](const std::string& nqn) {
      return nvmetcp::DeviceOwner{nqn, 0};
    });
  }

 private:
  World& world_;
};

class SimulatedDiscovery final : public discovery::Actions {
 public:
  explicit SimulatedDiscovery(World& world) : world_(world) {}

  Result<std::vector<nvmetcp::Controller>> controllers() override { return world_.controllers(); }
  std::string autoconnect_rule() override { return ""; }

  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal, std::string interface) override {
    co_return world_.connect(nvmetcp::kDiscoveryNqn, portal, interface);
  }

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) override {
    const auto found = std::ranges::find(world_.controllers(), controller, &nvmetcp::Controller::name);
    if (found == world_.controllers().end()) co_return fail(Errc::NotFound, controller + " is gone");
    co_return world_.targets().discover(found->portal);
  }

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal,
                                                     std::string /*interface*/) override {
    co_return world_.targets().discover(portal);
  }

  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string /*subsystem*/) override {
    co_return world_.disconnect(controller);
  }

 private:
  World& world_;
};

}  // namespace spark::sim
