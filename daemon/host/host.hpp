// The host that the daemon observes and changes, except for its copies of datasets: a real one, or a
// simulated one. main chooses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/datasets.hpp"
#include "daemon/discovery/actions.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/uevents.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/workers/runner.hpp"

namespace spark {

// The dependencies of a host; they outlive it.
struct HostContext {
  boost::asio::any_io_executor executor;
  const Clock& clock;
  workers::Runner& runner;
  HostSnapshot& snapshot;
  std::filesystem::path volumes_folder;  // in the state folder: the files kept for each volume
};

class Host {
 public:
  virtual ~Host() = default;

  virtual volumes::Seams seams_of(const config::Volume& volume,
                                  const std::optional<config::Target>& target) = 0;
  virtual std::unique_ptr<discovery::Actions> discovery_of(const config::Target& target) = 0;
  // From now until stop(), calls `heard` for each kernel event.
  virtual Result<> start(std::function<void(const Uevent&)> heard) = 0;
  virtual void stop() = 0;
  // Removes the parts of `place` that a worker can't check on this host.
  virtual void limit_to_host(datasets::SourcePlace& place) const = 0;
  virtual bool is_simulated() const = 0;
};

using MakeHost = std::function<std::unique_ptr<Host>(HostContext)>;

}  // namespace spark
