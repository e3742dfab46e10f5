// The folder that a volume is mounted on, and what is taken off it.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/mounts/guard.hpp"
#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class MountPoint {
 public:
  explicit MountPoint(VolumeContext& volume) : volume_(volume) {}

  // No process can write to it while nothing is mounted there. Each time before the volume is brought up or
  // taken down: a person may have removed the guard meanwhile.
  asio::awaitable<void> guard();
  // What is in the folder is not of another use.
  bool may_hide_files() const { return guard_.is_ours; }

  // Takes off a file system that shut down on a device that works: the kernel keeps it until its last user
  // has let go.
  asio::awaitable<Result<>> clear_broken();
  // What is to be replaced once its successor has been checked: until then, what is read and written there
  // gets errors. None: the mount there is not dead.
  std::optional<mounts::DeadMount> dead_mount();

 private:
  VolumeContext& volume_;
  mounts::Guard guard_;  // as it was looked at last
};

}  // namespace spark::volumes
