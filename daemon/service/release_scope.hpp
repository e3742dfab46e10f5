// What `spark-staged release` is about: which volumes, which controllers of each, and which of them share a
// connection.
#pragma once

#include <memory>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark {

// The connection to one subsystem of a target, of which each volume is a namespace.
struct SharedLink {
  std::size_t volumes = 0;  // that are not through yet: the last one disconnects
  bool is_needed = false;   // one of them stays mounted
  bool is_silent = false;   // one of them got no answer over it
};

// Of each volume: those of one subsystem of one target have one.
std::vector<std::shared_ptr<SharedLink>> links_of(const config::Config& config,
                                                  const std::vector<config::Volume>& volumes);

// Which controllers are the volume's: those at an address of its target, and those that spark-stage made at
// an address of no other target, as a host name led to. A machine that goes down can't wait for a name
// service.
void know_controllers(const volumes::Seams& seams, const config::Config& config,
                      const config::Volume& volume);

// What is connected by us and not in the configuration: volumes that left it while they were in use, or all
// of them if the file can't be read. One for each mount, and one without for a subsystem that has none.
std::vector<config::Volume> not_in_config(const config::Config& config, HostSnapshot& snapshot);

// The connections to discovery services that the daemon listens at.
std::vector<nvmetcp::Controller> watches(HostSnapshot& snapshot);

}  // namespace spark
