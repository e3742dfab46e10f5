// Releases the volumes of a host on which the daemon does not run: each is unmounted and disconnected if its
// target answers. A shutdown does not wait for a silent target: its connection ends with the machine.
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
  // How long programs that use it may take to end, as the machine stops them meanwhile.
  Duration users{8'000};
  Duration look_again{300};  // between two attempts to unmount, and two checks of an unmount that takes long
  // Consecutive checks after which a target that has answered before counts as silent.
  unsigned silent_looks = 2;
  // During a flush, a request to an NFS server queues behind the data. A shutdown has to end before systemd
  // ends it.
  Duration flush_silence{60'000}, shutdown_silence{15'000};
};

enum class ReleaseReason { Asked, Shutdown };

struct ReleaseOutcome {
  std::string said;     // a sentence for the log
  bool is_done = true;  // false: something could not be left as it should be, or unwritten data may be lost
};
boost::asio::awaitable<ReleaseOutcome> release_volume(volumes::Seams seams, const config::Volume& volume,
                                                      SharedLink& link, const Clock& clock,
                                                      ReleaseTimings timings, ReleaseReason reason);

// Releases all volumes of a configuration in parallel; returns when the last one is done. At shutdown it also
// releases volumes outside the configuration. Otherwise it leaves those alone, and ends the connections that
// listen to targets. Volumes that an operator
// took down are left alone, unless the machine stops. Must not run while the daemon runs, which would bring
// the volumes up again. False if a volume is still mounted.
bool release_all(const config::Config& config, const std::string& program,
                 const std::filesystem::path& state_dir, ReleaseReason reason);

}  // namespace spark
