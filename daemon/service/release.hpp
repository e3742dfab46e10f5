// Releases the volumes of a host on which the daemon does not run: each is unmounted and disconnected if its
// target answers. One that is silent is cut off when the machine goes down, which can't wait for it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "daemon/config/model.hpp"
#include "daemon/sight.hpp"
#include "daemon/volumes/actions.hpp"

namespace spark {

struct ReleasePatience {
  Duration users{8'000};      // for the programs that use it to end, as the machine ends them meanwhile
  Duration look_again{300};   // between two attempts to unmount, and two looks at one that takes long
  unsigned silent_looks = 2;  // in a row, until a target that has answered counts as silent
};

// The connection to one subsystem, of which each volume is a namespace.
struct SharedLink {
  std::size_t volumes = 0;  // that are not through yet: the last one disconnects
  bool is_needed = false;   // one of them stays mounted
  bool is_silent = false;   // one of them got no answer over it
};

enum class ReleaseReason { Asked, Shutdown };

// A sentence for the log.
boost::asio::awaitable<std::string> release_volume(std::shared_ptr<volumes::VolumeActions> actions,
                                                   const config::Volume& volume, SharedLink& link,
                                                   const Clock& clock, ReleasePatience patience,
                                                   ReleaseReason reason);

// What is connected by us and not in the configuration: volumes that left it while they were in use, or all
// of them if the file can't be read. One for each mount, and one without for a subsystem that has none.
std::vector<config::Volume> not_in_config(const config::Config& config, Sight& sight);

// All volumes of a configuration, side by side; ends when the last one is through. When the machine goes down
// also what is not in the configuration; else that is left alone, and what listens to targets is ended. Not
// while the daemon runs: it would bring them up again.
void release_all(const config::Config& config, const std::string& program,
                 const std::filesystem::path& state_dir, ReleaseReason reason);

}  // namespace spark
