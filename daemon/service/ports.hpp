// What the daemon answers on beside its socket, as the configuration says.
#pragma once

#include "daemon/config/model.hpp"
#include "daemon/fleet/peer_service.hpp"
#include "daemon/metrics/port.hpp"

namespace spark {

struct Ports {
  metrics::Port metrics;
  fleet::PeerService peers;

  // A simulated host has no peers.
  void apply(const config::Config& config, bool is_simulated) {
    metrics.apply(config.metrics);
    if (!is_simulated) peers.apply(config);
  }
};

}  // namespace spark
