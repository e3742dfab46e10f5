// Releases the volumes of a host on which the daemon does not run: each is unmounted and disconnected if its
// target answers. One that is silent is cut off when the machine goes down, which can't wait for it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "daemon/config/model.hpp"
#include "daemon/service/release_scope.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark {

struct ReleaseTimings {
  Duration users{8'000};      // for the programs that use it to end, as the machine ends them meanwhile
  Duration look_again{300};   // between two attempts to unmount, and two looks at one that takes long
  unsigned silent_looks = 2;  // in a row, until a target that has answered counts as silent
};

enum class ReleaseReason { Asked, Shutdown };

// A sentence for the log.
boost::asio::awaitable<std::string> release_volume(volumes::Seams seams, const config::Volume& volume,
                                                   SharedLink& link, const Clock& clock,
                                                   ReleaseTimings timings, ReleaseReason reason);

// All volumes of a configuration, side by side; ends when the last one is through. When the machine goes down
// also what is not in the configuration; else that is left alone, and what listens to targets is ended. Not
// while the daemon runs: it would bring them up again.
void release_all(const config::Config& config, const std::string& program,
                 const std::filesystem::path& state_dir, ReleaseReason reason);

}  // namespace spark
