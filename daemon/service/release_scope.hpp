// The scope of `spark-staged release`: the volumes, the controllers of each, and the volumes that share a
// connection.
#pragma once

#include <memory>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark {

// The connection to one subsystem of a target; each of its volumes is a namespace of that subsystem.
struct SharedLink {
  std::size_t volumes = 0;  // volumes not released yet: the last one disconnects
  bool is_used = false;     // one of its volumes is not down
  bool is_needed = false;   // one of its volumes stays mounted
  // Volumes that can't be unmounted: no answer, or their disks were exchanged.
  nvmetcp::CutOff given_up{};
};

// None: one of its volumes is not released yet, or stays mounted.
std::optional<volumes::LooseConnection> loose_connection(const SharedLink& link,
                                                         const config::Volume& volume);

// One for each volume; volumes of one subsystem of one target share it.
std::vector<std::shared_ptr<SharedLink>> links_of(const config::Config& config,
                                                  const std::vector<config::Volume>& volumes);

// Determines the volume's controllers: those at an address of its target, and those that spark-stage created
// at an address of no other target, because a host name may have resolved to it. A shutdown can't wait for a
// name service.
void know_controllers(const volumes::Seams& seams, const config::Config& config,
                      const config::Volume& volume);

// Volumes connected by spark-stage but not in the configuration: removed from it while in use, or all volumes
// if the file can't be read. One for each mount, and one without a mount for a subsystem that has none.
std::vector<config::Volume> not_in_config(const config::Config& config, HostSnapshot& snapshot);

// The daemon's connections to discovery services.
std::vector<nvmetcp::Controller> watches(HostSnapshot& snapshot);

}  // namespace spark
