// An NFS volume's way to its mount.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/volumes/attachment/mount_point.hpp"
#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class NfsAttachment {
 public:
  NfsAttachment(VolumeContext& volume, MountPoint& mount_point)
      : volume_(volume), mount_point_(mount_point) {}

  asio::awaitable<Result<>> bring_up();

 private:
  Result<> check_adopted();
  asio::awaitable<Result<>> mount();

  VolumeContext& volume_;
  MountPoint& mount_point_;
};

}  // namespace spark::volumes
