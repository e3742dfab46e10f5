#include "daemon/sim/fabric_seams.hpp"

#include <algorithm>

#include "daemon/sim/waiting.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::sim {

asio::awaitable<Result<nvmetcp::DiscoveryLog>> SimulatedFabric::discover(nvmetcp::Portal portal,
                                                                         std::string /*interface*/) {
  co_return world_.targets().discover(portal);
}

asio::awaitable<Result<nvmetcp::Connection>> SimulatedFabric::connect(std::string subsystem,
                                                                      nvmetcp::Portal portal,
                                                                      nvmetcp::ConnectOptions /*options*/) {
  co_await wait_for(world_.targets().storage_of(volume_).connects, pace_);
  co_return world_.connect(subsystem, portal);
}

asio::awaitable<Result<std::vector<nvmetcp::Portal>>> SimulatedFabric::resolve(nvmetcp::Portal portal) {
  std::vector<nvmetcp::Portal> numeric{Targets::resolve(portal)};
  co_return numeric;
}

asio::awaitable<Result<>> SimulatedFabric::set_timers(std::string /*controller*/, std::string /*subsystem*/,
                                                      nvmetcp::ConnectOptions /*options*/) {
  co_return Result<>{};
}

asio::awaitable<Result<>> SimulatedFabric::rescan(std::string /*controller*/, std::string /*subsystem*/) {
  co_return Result<>{};
}

asio::awaitable<Result<Change>> SimulatedFabric::disconnect(std::string controller, std::string /*subsystem*/,
                                                            nvmetcp::CutOff /*cut_off*/,
                                                            std::vector<std::string> /*leaving*/) {
  co_return world_.disconnect(controller);
}

asio::awaitable<Result<nvmetcp::Smart>> SimulatedFabric::smart(std::string controller) {
  co_return fail(Errc::Unsupported, controller + " is simulated, and has no SMART log page");
}

Result<std::vector<nvmetcp::Controller>> SimulatedFabricSnapshot::connected(const std::string& subsystem) {
  return nvmetcp::controllers_of(world_.controllers(), subsystem, kHostNqn);
}

Result<> SimulatedFabricSnapshot::check_paths_secured(const std::string& /*subsystem*/,
                                                      const nvmetcp::ConnectOptions& /*options*/) {
  return {};
}

Result<nvmetcp::Namespace> SimulatedFabricSnapshot::find_namespace_below(
    const std::vector<nvmetcp::Controller>& controllers, std::uint32_t nsid) {
  return world_.find_namespace(controllers, nsid);
}

Result<nvmetcp::DeviceOwner> SimulatedFabricSnapshot::owner_of_device(dev_t device) {
  return world_.subsystem_of(device).map([](const std::string& nqn) { return nvmetcp::DeviceOwner{nqn, 0}; });
}

asio::awaitable<Result<nvmetcp::Connection>> SimulatedDiscovery::watch(nvmetcp::Portal portal,
                                                                       std::string /*interface*/) {
  co_return world_.connect(nvmetcp::kDiscoveryNqn, portal);
}

asio::awaitable<Result<nvmetcp::DiscoveryLog>> SimulatedDiscovery::read(std::string controller) {
  const auto found = std::ranges::find(world_.controllers(), controller, &nvmetcp::Controller::name);
  if (found == world_.controllers().end()) co_return fail(Errc::NotFound, controller + " is gone");
  co_return world_.targets().discover(found->portal);
}

asio::awaitable<Result<nvmetcp::DiscoveryLog>> SimulatedDiscovery::ask(nvmetcp::Portal portal,
                                                                       std::string /*interface*/) {
  co_return world_.targets().discover(portal);
}

asio::awaitable<Result<Change>> SimulatedDiscovery::disconnect(std::string controller,
                                                               std::string /*subsystem*/) {
  co_return world_.disconnect(controller);
}

}  // namespace spark::sim
