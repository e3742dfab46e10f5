// Assembles the daemon: configuration, volumes, datasets, API, systemd. Created once, in main.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/datasets.hpp"
#include "daemon/discovery/watch_set.hpp"
#include "daemon/fleet/peer_service.hpp"
#include "daemon/host/host.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/jobs.hpp"
#include "daemon/memory/memory_watch.hpp"
#include "daemon/metrics/port.hpp"
#include "daemon/outputs/stage_outs.hpp"
#include "daemon/outputs/watch/output_watches.hpp"
#include "daemon/service/active_config.hpp"
#include "daemon/service/parts.hpp"
#include "daemon/systemd.hpp"
#include "daemon/volumes/volume/volume_set.hpp"
#include "daemon/workers/process_runner.hpp"

namespace spark {

namespace asio = boost::asio;

struct ServiceOptions {
  std::filesystem::path config_file = config::kDefaultPath;
  std::filesystem::path socket = "/run/spark-stage/api.sock";
  std::filesystem::path state_dir = "/var/lib/spark-stage";
  std::string program;                // the executable of the workers
  std::string group = "spark-stage";  // its members may use the API; a missing group has no members
};

class Service {
 public:
  Service(asio::io_context& context, ServiceOptions options, config::Config config, const MakeHost& make_host,
          const Clock& clock, Notifier& notifier);

  // Listens, starts the volumes, notifies systemd. The daemon is ready once it answers requests, even if its
  // volumes are not.
  Result<> start();

 private:
  struct Copies {
    datasets::Datasets datasets;
    outputs::StageOuts outputs;
    memory::MemoryWatch memory;
    outputs::OutputWatches watches{outputs.context(), outputs};
  };
  // The daemon's ports in addition to its socket.
  struct Ports {
    metrics::Port metrics;
    fleet::PeerService peers;
  };

  // Forward changes reported by one part to the parts that depend on them.
  void volume_changed(const volumes::Volume& volume, volumes::State before);
  void offer_changed(const discovery::TargetWatch& watch, const std::set<std::string>& before);
  void device_changed(const Uevent& event);
  void config_changed();
  void apply_to_host(const config::Config& config);

  // See outputs::Context::in_use.
  Result<std::vector<std::string>> entries_in_use(const std::string& volume, const std::string& folder) const;
  void report_status();  // to systemd, as `systemctl status` shows it
  asio::awaitable<void> handle_signals();
  asio::awaitable<void> feed_watchdog();
  void stop();

  asio::io_context& context_;
  ServiceOptions options_;
  Notifier& notifier_;
  asio::signal_set signals_;
  // Destroyed in reverse order, so that each part outlives the parts with references to it.
  workers::ProcessRunner runner_;
  Jobs jobs_;
  HostSnapshot snapshot_;
  std::unique_ptr<Host> host_;
  volumes::VolumeSet volumes_;
  ActiveConfig config_;
  discovery::WatchSet watches_;
  Copies copies_;
  Ports ports_;
  DaemonParts parts_;
  std::shared_ptr<api::Server> server_;
};

}  // namespace spark
