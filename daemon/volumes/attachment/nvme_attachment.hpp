// Brings an NVMe/TCP volume to its mount: offered → connected → namespace → superblock → mounted. Also leaves
// a device that contains another file system.
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

  // `takes`: an operator requested a takeover of the reservation.
  asio::awaitable<Result<>> bring_up(bool takes);
  // The last attempt reached the subsystem, but the subsystem did not have the namespace.
  bool is_namespace_missing() const { return is_namespace_missing_; }

  // The device contains another file system than the mounted one: stops writing and disconnects the device.
  // Before 6.15, Linux writes an ext4's superblock on unmount, even if the file system was shut down, and
  // would overwrite the other one's. A mount without a device can't.
  asio::awaitable<void> leave_other_filesystem(CheckedMountPtr mount, std::string reason);
  // Whether the mount may now be unmounted. If this host has lost the right to write, only if it can't write
  // any more; other volumes may have needed the connection until now; or the original file system
  // may be back.
  asio::awaitable<Result<>> check_may_unmount();
  // Before an unmount writes: a mount that is not checked yet is adopted. An error if it can't be checked, or
  // is of another file system. Over a live link only.
  asio::awaitable<Result<>> check_before_leaving();
  // After a restart: a writer below a mount that hides it goes on writing, so its fence is watched.
  asio::awaitable<void> adopt_hidden_writer();
  // Refused while the mount waits for an address that its target has left.
  Result<> check_device_is_current();

 private:
  asio::awaitable<Result<>> adopt();
  asio::awaitable<bool> is_unchanged();
  asio::awaitable<bool> is_own_publication(mounts::Mount mount);
  asio::awaitable<bool> record_publication(mounts::Mount mount);
  asio::awaitable<Result<bool>> leave_publication();
  asio::awaitable<Result<>> adopt_unknown(Standing standing);
  CheckedMount as_found(OwnMount mount, const mounts::Superblock& superblock, bool is_writer) const;
  Result<> check_nothing_waits();
  asio::awaitable<Result<>> pin_adopted(mounts::Superblock superblock);
  asio::awaitable<Result<>> cut_off(CheckedMountPtr mount);
  asio::awaitable<Result<nvmetcp::Namespace>> wait_for_namespace();
  asio::awaitable<Result<>> check_and_mount(nvmetcp::Namespace block, bool takes);
  asio::awaitable<Result<>> mount(nvmetcp::Namespace block, mounts::Superblock superblock, bool is_writer);
  mounts::MountRequest request_for(const mounts::Superblock& superblock, bool is_writer);
  bool is_fenced_by_mmp_alone() const;
  Error with_the_dead_mount(Error error);
  void warn_of_options(const mounts::Mount& mount);
  void warn_of_change(const FilesystemIdentity& before, const nvmetcp::Namespace& block);

  VolumeContext& volume_;
  Paths& paths_;
  Fence& fence_;
  MountPoint& mount_point_;
  bool is_namespace_missing_ = false;
  std::string hidden_refusal_;  // why a writer below another mount was last not adopted, for the log
  bool is_away_ = false;        // the last attempt did not reach the target
};

}  // namespace spark::volumes
