// Handles an existing mount, created by this program before a restart or by a person, and a device under it
// that now contains another file system.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/attachment/nvme_attachment.hpp"
#include "daemon/volumes/attachment/nvme_checks.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

// Succeeds if the mount has the requested file system and access mode.
asio::awaitable<Result<>> NvmeAttachment::adopt() {
  const auto looked = volume_.top_mount();
  if (!looked) co_return looked.take_error();
  if (!*looked) co_return fail(Errc::Failed, "the mount vanished while it was looked at");
  const mounts::Mount& mount = **looked;
  const auto options = split(mount.options, ',');
  const bool is_read_only = std::ranges::find(options, "ro") != options.end();
  if (volume_.settings.access == config::Access::ReadOnly && !is_read_only) {
    co_return fail(Errc::Refused,
                   volume_.settings.mount.native() + " is mounted read-write already, and not by spark-stage",
                   "unmount it (and remove its fstab line), then it is mounted read-only by itself");
  }
  if (auto secured = co_await paths_.check_keys(); !secured) co_return secured;
  volume_.status.device = mount.source;
  volume_.status.filesystem_type = mount.type;
  if (volume_.mount.is_known) co_return Result<>{};
  if (paths_.look() != Link::Live) {  // frozen: its superblock is read as soon as possible
    const auto pinned = volume_.seams.store.pinned_identity();
    volume_.status.filesystem_uuid = pinned.value_or(FilesystemIdentity{}).uuid;
    co_return Result<>{};
  }
  co_return co_await adopt_unknown(mount);
}

asio::awaitable<Result<>> NvmeAttachment::adopt_unknown(mounts::Mount mount) {
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
  if (!superblock) co_return superblock.take_error();
  if (auto same = check_identity(volume_, *superblock); !same) {
    if (!is_reader(volume_)) co_await stop_writing_to(superblock->uuid);
    co_return same;
  }
  volume_.status.filesystem_uuid = superblock->uuid;
  if (const auto pinned = co_await pin_adopted(*superblock); !pinned) log::survived(pinned.error());
  if (is_reader(volume_) && !mounts::has_option(mount.super_options, "norecovery")) {
    volume_.status.warnings.push_back(
        volume_.settings.mount.native() +
        " was mounted by somebody else, not as spark-stage does it: `spark-stage volumes down " +
        volume_.settings.name + "`, then `up`, sets the device read-only and replays no journal");
  }
  volume_.mount.stamp = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{}).stamp;
  Result<> adopted;
  if (fence_.is_wanted()) adopted = co_await fence_.adopt(*superblock);
  volume_.mount.is_known = adopted.has_value();
  co_return adopted;
}

// From now on the volume has this file system, as if this daemon had mounted it.
asio::awaitable<Result<>> NvmeAttachment::pin_adopted(mounts::Superblock superblock) {
  const auto pinned = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  if (pinned.uuid == superblock.uuid) co_return Result<>{};
  const config::NvmeSource& source = *volume_.settings.nvme;
  const auto block = volume_.seams.snapshot.find_namespace(source.subsystem, source.nsid);
  FilesystemIdentity identity{superblock.type,          superblock.uuid,  superblock.filesystem_bytes,
                              block ? block->id() : "", superblock.stamp, false};
  co_return co_await volume_.seams.store.pin(std::move(identity));
}

// Each call to a device that does not answer would leave another stuck worker.
Result<> NvmeAttachment::check_nothing_waits() {
  if (!volume_.seams.device.has_stuck_worker()) return {};
  return fail(Errc::Unavailable, "a question to " + volume_.status.device + " still waits in the kernel",
              "it ends when the target answers, or with its connection");
}

// For a writable mount that existed before this daemon, on a device that now contains another file system.
asio::awaitable<void> NvmeAttachment::stop_writing_to(std::string other_uuid) {
  const auto mounted = co_await volume_.seams.device.mounted_state(volume_.settings.mount);
  if (!mounted || mounted->uuid.empty() || mounted->uuid == other_uuid) co_return;
  co_await leave_other_filesystem(volume_.status.device + " holds another file system than " + mounted->uuid +
                                  ", which is mounted");
}

asio::awaitable<void> NvmeAttachment::leave_other_filesystem(std::string reason) {
  volume_.mount.is_exchanged = true;
  co_await fence_.lose(std::move(reason));
  if (!volume_.seams.neighbours.subsystem_shared()) co_await cut_off();
}

asio::awaitable<void> NvmeAttachment::cut_off() {
  const auto gone =
      co_await disconnect_subsystem(volume_.seams, volume_.settings.nvme->subsystem, nvmetcp::Users::CutOff);
  if (!gone.outcome) log::survived(gone.outcome.error());
}

asio::awaitable<Result<>> NvmeAttachment::check_may_unmount() {
  MountState& mount = volume_.mount;
  if (!mount.is_exchanged || volume_.look_at_mount() != Place::Broken) co_return Result<>{};
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
  if (!superblock) co_return superblock.take_error();
  const auto pinned = volume_.seams.store.pinned_identity();
  mount.is_exchanged = !pinned || superblock->uuid != pinned->uuid;
  if (!mount.is_exchanged) co_return Result<>{};
  if (volume_.seams.neighbours.subsystem_shared()) {
    co_return fail(Errc::Refused,
                   mount.fence_lost +
                       "; the dead mount stays, as its unmount would write to the other file system, "
                       "and other volumes use the connection",
                   "take the other volumes of subsystem " + printable(volume_.settings.nvme->subsystem) +
                       " down, then it is cut off");
  }
  co_await cut_off();
  co_return Result<>{};
}

}  // namespace spark::volumes
