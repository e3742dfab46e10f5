// The folder that a volume is mounted on, and the removal of dead or broken mounts.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/mounts/guard.hpp"
#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class MountPoint {
 public:
  explicit MountPoint(VolumeContext& volume)
      : volume_(volume), leaving_(volume.timings.first_leave, volume.timings.longest_leave, volume.clock) {}

  // Prevents writes while nothing is mounted there. Called each time before the volume is brought up or taken
  // down, because a person may have removed the guard meanwhile.
  asio::awaitable<void> guard();
  // The files in the folder have no other use.
  bool may_hide_files() const { return guard_.is_ours; }

  // Unmounts a file system that shut down on a working device: the kernel keeps it until its last user has
  // closed it.
  asio::awaitable<Result<>> clear_broken();
  // The mount to replace once its successor has been checked. Until then, reads and writes there return
  // errors. None: the mount there is not dead.
  std::optional<mounts::DeadMount> dead_mount();

 private:
  // A broken mount that its users keep. Each attempt to unmount it examines every process of the host.
  struct Kept {
    OwnMount mount;
    Error why;
    SteadyTime until;  // the next attempt, unless an operator asks
  };

  VolumeContext& volume_;
  Backoff leaving_;
  std::optional<Kept> kept_;
  mounts::Guard guard_;  // result of the last check
};

}  // namespace spark::volumes
