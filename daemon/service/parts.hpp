// The parts of the daemon that requests use. Service owns all of them, and they outlive every request.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "base/clock.hpp"
#include "daemon/datasets/datasets.hpp"
#include "daemon/discovery/watch_set.hpp"
#include "daemon/fleet/peer_service.hpp"
#include "daemon/jobs.hpp"
#include "daemon/memory/memory_watch.hpp"
#include "daemon/metrics/port.hpp"
#include "daemon/outputs/stage_outs.hpp"
#include "daemon/outputs/watch/output_watches.hpp"
#include "daemon/service/active_config.hpp"
#include "daemon/volumes/volume/volume_set.hpp"
#include "daemon/workers/runner.hpp"

namespace spark {

using JobPtr = std::shared_ptr<Job>;

struct DaemonParts {
  boost::asio::any_io_executor executor;  // the daemon's thread
  const Clock& clock;
  SteadyTime started;  // when the daemon started
  bool is_simulated;   // the host is simulated: see docs/simulation.md
  workers::Runner& runner;
  Jobs& jobs;
  volumes::VolumeSet& volumes;
  ActiveConfig& config;
  discovery::WatchSet& watches;
  datasets::Datasets& datasets;
  outputs::StageOuts& outputs;
  outputs::OutputWatches& output_watches;
  fleet::PeerService& peers;
  memory::MemoryWatch& memory;
  metrics::Port& metrics;
};

}  // namespace spark
