#include "daemon/sim/simulated_host.hpp"

#include <utility>

#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/sim/fabric_seams.hpp"
#include "daemon/sim/storage_seams.hpp"
#include "daemon/volumes/adapters/file_store.hpp"

namespace spark::sim {
namespace {

// The volume's persistent data is in the state folder, as in any daemon.
struct SimulatedVolume {
  volumes::Asker asker;
  volumes::FileStore store;
  SimulatedFabric fabric;
  SimulatedFabricSnapshot snapshot;
  SimulatedMounts mounts;
  SimulatedDevice device;

  SimulatedVolume(const HostContext& context, World& world, Duration pace, const std::string& volume)
      : asker(context.runner, context.snapshot, volume),
        store(asker, volume, context.volumes_folder),
        fabric(world, volume, pace),
        snapshot(world),
        mounts(world, store, context.clock, volume, pace),
        device(world, volume) {}
};

// The beginning of each event's sentence in the log.
constexpr char kSimulation[] = "simulation: ";

}  // namespace

SimulatedHost::SimulatedHost(HostContext context, const config::Config& config, Scenario scenario)
    : context_(std::move(context)),
      pace_(scenario.pace),
      timeline_(context_.executor, scenario, [this](const Event& event) {
        log::info(kSimulation + event.sentence);
        world_.apply(event.change);
      }) {
  for (const auto& [name, target] : config.targets) world_.add(target);
  for (const config::Volume& volume : config.volumes) world_.add(volume);
  for (const WorldChange& change : scenario.beginning) world_.apply(change);
}

volumes::Seams SimulatedHost::seams_of(const config::Volume& volume,
                                       const std::optional<config::Target>& target) {
  if (target) world_.add(*target);
  world_.add(volume);
  const auto all = std::make_shared<SimulatedVolume>(context_, world_, pace_, volume.name);
  volumes::Reserve reserve = [&device = all->device](volumes::ReservationRequest request) {
    return device.reserve(std::move(request));
  };
  volumes::Neighbours this_host{[] {
                                  return nvmetcp::HostIdentity{kHostNqn, kHostId};
                                },
                                [] { return kNodeName; }};
  return {all->fabric,        all->snapshot, all->mounts,          all->device,
          std::move(reserve), all->store,    std::move(this_host), all};
}

std::unique_ptr<discovery::Actions> SimulatedHost::discovery_of(const config::Target& target) {
  world_.add(target);
  return std::make_unique<SimulatedDiscovery>(world_);
}

Result<> SimulatedHost::start(std::function<void(const Uevent&)> heard) {
  log::warning(
      "this host is SIMULATED: its targets, connections, mounts and reservations exist in this "
      "program's memory alone");
  world_.on_uevent(std::move(heard));
  launch(context_.executor, "simulation", timeline_.run());
  return {};
}

void SimulatedHost::limit_to_host(datasets::SourcePlace& place) const {
  place.mount.clear();
  place.device.clear();
}

}  // namespace spark::sim
