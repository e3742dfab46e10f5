// An NVMe/TCP volume's way to its mount: offered → connected → namespace → superblock → mounted. And the way
// off a device that holds another file system.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "daemon/volumes/attachment/mount_point.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/paths/paths.hpp"

namespace spark::volumes {

class NvmeAttachment {
 public:
  NvmeAttachment(VolumeContext& volume, Paths& paths, Fence& fence, MountPoint& mount_point)
      : volume_(volume), paths_(paths), fence_(fence), mount_point_(mount_point) {}

  // `takes`: an operator asked to take the reservation over from the host that holds it.
  asio::awaitable<Result<>> bring_up(bool takes);
  // The subsystem was reached at the last attempt, and did not show it.
  bool is_namespace_missing() const { return is_namespace_missing_; }

  // The device holds another file system than the mounted one: writing is stopped, and the device cut off,
  // since before 6.15 Linux writes an ext4's superblock when it unmounts it, also of one that was shut down,
  // over that of the other file system. A mount whose device is gone can't.
  asio::awaitable<void> leave_other_filesystem(std::string reason);
  // Whether what is mounted may be unmounted, after that. Other volumes may have needed the connection until
  // now; or the file system is back.
  asio::awaitable<Result<>> check_may_unmount();

 private:
  asio::awaitable<Result<>> clear_broken();
  asio::awaitable<Result<>> adopt();
  asio::awaitable<Result<>> adopt_unknown(mounts::Mount mount);
  Result<> check_nothing_waits();
  asio::awaitable<Result<>> pin_adopted(mounts::Superblock superblock);
  asio::awaitable<void> stop_writing_to(std::string other_uuid);
  asio::awaitable<void> cut_off();
  asio::awaitable<Result<nvmetcp::Namespace>> wait_for_namespace();
  asio::awaitable<Result<>> check_and_mount(nvmetcp::Namespace block, bool takes);
  asio::awaitable<Result<>> mount(nvmetcp::Namespace block, mounts::Superblock superblock);
  mounts::MountRequest request_for(const mounts::Superblock& superblock);
  Error with_the_dead_mount(Error error);
  void warn_of_change(const FilesystemIdentity& before, const nvmetcp::Namespace& block);

  VolumeContext& volume_;
  Paths& paths_;
  Fence& fence_;
  MountPoint& mount_point_;
  bool is_namespace_missing_ = false;
};

}  // namespace spark::volumes
