// The daemon's host, simulated: see docs/simulation.md.
#pragma once

#include <memory>

#include "daemon/host/host.hpp"
#include "daemon/sim/timeline.hpp"
#include "daemon/sim/world.hpp"

namespace spark::sim {

class SimulatedHost final : public Host {
 public:
  // Starts in the scenario's initial state, with the configuration's targets and volumes.
  SimulatedHost(HostContext context, const config::Config& config, Scenario scenario);

  volumes::Seams seams_of(const config::Volume& volume, const std::optional<config::Target>& target) override;
  std::unique_ptr<discovery::Actions> discovery_of(const config::Target& target) override;
  Result<> start(std::function<void(const Uevent&)> heard) override;
  void stop() override { timeline_.stop(); }
  // Workers can't check the simulated mounts and devices.
  void limit_to_host(datasets::SourcePlace& place) const override;
  bool is_simulated() const override { return true; }

 private:
  HostContext context_;
  World world_;
  Duration pace_;
  Timeline timeline_;
};

}  // namespace spark::sim
