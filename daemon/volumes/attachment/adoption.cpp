// Handles an existing mount, created by this program before a restart or by a person, and a device under it
// that now contains another file system.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/attachment/nvme_attachment.hpp"
#include "daemon/volumes/attachment/nvme_checks.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

// Succeeds if the mount has the requested file system and access mode.
asio::awaitable<Result<>> NvmeAttachment::adopt() {
  const Standing standing = volume_.look_at_standing();
  if (standing.place != Place::Ours)
    co_return fail(Errc::Failed, "the mount vanished while it was looked at");
  const mounts::Mount& mount = *standing.top;
  const bool is_read_only = mounts::has_option(mount.options, "ro");
  if (is_reader(volume_) && !is_read_only) co_return fail(mounted_otherwise(volume_.settings, true));
  if (!is_reader(volume_) && mounts::is_read_only(mount) && !volume_.checked) {
    const bool is_recorded_now = co_await record_publication(mount);
    if (!is_recorded_now) co_return fail(mounted_otherwise(volume_.settings, false));
  }
  if (auto secured = co_await paths_.check_keys(); !secured) co_return secured;
  volume_.status.device = mount.source;
  volume_.status.filesystem_type = mount.type;
  if (volume_.checked && volume_.checked->is_hidden) volume_.forget_mount();
  if (volume_.checked && co_await is_unchanged()) co_return Result<>{};
  if (paths_.look() != Link::Live) {  // frozen: its superblock is read as soon as possible
    volume_.status.filesystem_uuid = expected_uuid(volume_.seams, volume_.settings);
    co_return Result<>{};
  }
  co_return co_await adopt_unknown(standing);
}

asio::awaitable<void> NvmeAttachment::adopt_hidden_writer() {
  const Standing standing = volume_.look_at_standing();
  if (volume_.checked || standing.place != Place::Covered || !standing.own || is_reader(volume_)) co_return;
  const auto& table = volume_.seams.mounts.mount_table();
  const auto block = own_namespace(volume_.seams, volume_.settings);
  if (!table || !block || block->device_number != standing.own->device_number()) co_return;
  const auto hidden = std::ranges::find(*table, standing.own->id(), &mounts::Mount::id);
  if (hidden == table->end() || mounts::is_read_only(*hidden)) co_return;
  if (auto secured = co_await paths_.check_keys(); !secured || paths_.look() != Link::Live) co_return;
  volume_.status.device = "/dev/" + block->device;
  const auto adopted = co_await adopt_unknown(standing);
  const std::string why = adopted ? "" : adopted.error().message();
  if (std::exchange(hidden_refusal_, why) != why && !adopted) log::survived(adopted.error());
  if (volume_.checked) volume_.checked->is_hidden = true;
}

// The kernel may have given the number of the checked mount to another one between two checks.
asio::awaitable<bool> NvmeAttachment::is_unchanged() {
  if (paths_.look() != Link::Live || volume_.seams.device.has_stuck_worker()) co_return true;
  const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
  if (!superblock || !volume_.checked || superblock->uuid == volume_.checked->uuid)
    co_return volume_.checked != nullptr;
  volume_.forget_mount();
  co_return false;
}

// This host published it, and no writer has opened it since.
asio::awaitable<bool> NvmeAttachment::is_own_publication(mounts::Mount mount) {
  const bool is_of_reader = mounts::has_option(mount.super_options, "norecovery");
  if (is_of_reader || paths_.look() != Link::Live || volume_.seams.device.has_stuck_worker()) co_return false;
  const mounts::MountNumbers numbers{mount.id, mount.device_number};
  const auto state = co_await volume_.seams.device.mounted_state(mount.target, numbers);
  const auto identity = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  co_return state && state->published && !state->is_written_since && !state->uuid.empty() &&
      state->uuid == identity.uuid && state->published->host == volume_.seams.neighbours.node_name();
}

// After a crash between this host's publication, or its end, and the record of it. True: it is recorded now.
asio::awaitable<bool> NvmeAttachment::record_publication(mounts::Mount mount) {
  if (!co_await is_own_publication(std::move(mount))) co_return false;
  auto identity = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  identity.is_published = true;  // the stamp stays that of an earlier state: another host may have written it
  const auto recorded = co_await volume_.seams.store.pin(std::move(identity));
  co_return recorded.has_value();
}

// A publication that an operator has ended. True: it is unmounted, to be mounted for writing. Another program
// may make the mount writable while its publication is confirmed, and then write to it.
asio::awaitable<Result<bool>> NvmeAttachment::leave_publication() {
  const auto may_be_one = [this](const Standing& seen) {
    return seen.place == Place::Ours && mounts::is_read_only(*seen.top) && !volume_.checked &&
           !is_reader(volume_);
  };
  Standing standing = volume_.look_at_standing();
  if (!may_be_one(standing) || !volume_.status.is_to_write || !co_await is_own_publication(*standing.top))
    co_return false;
  const OwnMount confirmed = *standing.own;
  standing = volume_.look_at_standing();
  if (!may_be_one(standing) || *standing.own != confirmed)
    co_return fail(Errc::Unavailable,
                   "the mount on " + volume_.settings.mount.native() + " changed while it was looked at",
                   "try again");
  const auto unmounted = co_await volume_.seams.mounts.unmount(*standing.own, mounts::Unmount::Plain);
  if (!unmounted)
    co_return fail_with(unmounted.error(),
                        "volume " + volume_.settings.name + " is still mounted as it was published");
  volume_.forget_mount();
  co_return true;
}

asio::awaitable<Result<>> NvmeAttachment::adopt_unknown(Standing standing) {
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
  if (!superblock) co_return superblock.take_error();
  CheckedMount found = as_found(*standing.own, *superblock, !is_reader(volume_));
  const auto mounted = co_await mounted_filesystem(volume_.seams, *standing.own);
  const bool is_exchanged = !mounted.empty() && mounted != superblock->uuid;
  const bool is_the_volume = mounted == expected_uuid(volume_.seams, volume_.settings);
  if (found.is_writer && is_exchanged && is_the_volume) {
    found.uuid = mounted;
    volume_.checked = std::make_shared<CheckedMount>(found);
    co_await leave_other_filesystem(
        volume_.checked,
        volume_.status.device + " holds another file system than " + mounted + ", which is mounted");
  }
  const bool is_new_uuid = mounted == superblock->uuid &&
                           is_renamed(volume_.seams, volume_.settings, *standing.own, superblock->uuid);
  if (auto same = is_new_uuid ? Result<>() : check_identity(volume_, *superblock); !same) co_return same;
  if (is_exchanged) {
    co_return fail(Errc::Refused,
                   volume_.settings.mount.native() + " shows file system " + mounted + ", and " +
                       volume_.status.device + " holds " + superblock->uuid + " by now",
                   "unmount it; it is then mounted automatically");
  }
  volume_.status.filesystem_uuid = superblock->uuid;
  Result<> recorded;
  if (!is_new_uuid) recorded = co_await pin_adopted(*superblock);
  if (!recorded) {
    log::survived(recorded.error());
    FilesystemIdentity unknown;  // the record of another file system must not stay; this needs no room
    (void)co_await volume_.seams.store.pin(std::move(unknown));
  }
  if (is_reader(volume_)) warn_of_options(*standing.top);
  found.stamp = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{}).stamp;
  if (found.is_writer && wants_fence(volume_.settings)) {
    auto adopted = co_await fence_.adopt(std::move(found), *superblock);
    if (!adopted) co_return adopted.take_error();
    found = std::move(*adopted);
  }
  fence_.keep();
  volume_.checked = std::make_shared<CheckedMount>(std::move(found));
  if (is_new_uuid)
    volume_.status.warn(Warning::FilesystemId, renamed(volume_.seams, volume_.settings, superblock->uuid));
  co_return Result<>{};
}

// A mount that this daemon made writable before, and published, has kept its journal.
void NvmeAttachment::warn_of_options(const mounts::Mount& mount) {
  const auto pinned = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  if (pinned.is_published || mounts::has_option(mount.super_options, "norecovery")) return;
  volume_.status.warn(Warning::MountOptions,
                      "the file system on " + volume_.settings.mount.native() +
                          " was mounted with other options than spark-stage's, perhaps by another program: "
                          "`spark-stage volumes down " +
                          volume_.settings.name +
                          "`, then `up`, sets the device read-only and replays no journal");
}

// The only place where a record of a mount begins.
CheckedMount NvmeAttachment::as_found(OwnMount mount, const mounts::Superblock& superblock,
                                      bool is_writer) const {
  CheckedMount found(std::move(mount));
  found.device = volume_.status.device;
  found.uuid = superblock.uuid;
  found.is_writer = is_writer;
  found.has_mmp = superblock.has_mmp;
  found.stamp = superblock.stamp;
  return found;
}

// From now on the volume has this file system, as if this daemon had mounted it.
asio::awaitable<Result<>> NvmeAttachment::pin_adopted(mounts::Superblock superblock) {
  const auto pinned = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  if (pinned.uuid == superblock.uuid) co_return Result<>{};
  const auto block = own_namespace(volume_.seams, volume_.settings);
  FilesystemIdentity identity{superblock.type,          superblock.uuid,  superblock.filesystem_bytes,
                              block ? block->id() : "", superblock.stamp, false};
  co_return co_await volume_.seams.store.pin(std::move(identity));
}

// Each call to a device that does not answer would leave another stuck worker.
Result<> NvmeAttachment::check_nothing_waits() {
  if (!volume_.seams.device.has_stuck_worker()) return {};
  return fail(Errc::Unavailable, "a request to " + volume_.status.device + " still waits in the kernel",
              "it ends when the target answers, or with its connection");
}

asio::awaitable<void> NvmeAttachment::leave_other_filesystem(CheckedMountPtr mount, std::string reason) {
  mount->is_exchanged = true;
  co_await fence_.lose(mount, std::move(reason));
  if (!mount->is_stopped) co_return;  // the kernel flushes a file system whose device is removed
  if (auto cut = co_await cut_off(mount); !cut) log::survived(cut.error());
}

// The mounted file system is not the one on the device: a mount without a device can't write to it.
asio::awaitable<Result<>> NvmeAttachment::cut_off(CheckedMountPtr mount) {
  const config::NvmeSource& source = *volume_.settings.nvme;
  std::string why = "other volumes use the connection, or other mounts";
  std::string hint = "take the other volumes of subsystem " + printable(source.subsystem) +
                     " down, and unmount its other devices; then it is cut off";
  if (const auto loose = loose_connection(volume_.seams, volume_.settings)) {
    nvmetcp::CutOff only_its{false, {mount->mount.device_number()}};
    const auto gone = co_await disconnect(volume_.seams, volume_.settings, *loose, std::move(only_its));
    if (volume_.look_at_mount() == Place::Dead) co_return Result<>{};
    const auto left = volume_.seams.snapshot.controllers(source.subsystem);
    why = !gone.outcome            ? gone.outcome.error().what
          : left && !left->empty() ? left->front().name + " belongs to " + printable(left->front().owner)
                                   : "its device is still there";
    const bool is_used = !gone.outcome && gone.outcome.error().kind == Errc::Refused;
    hint = is_used ? gone.outcome.error().hint
                   : "`sudo nvme disconnect -n " + printable(source.subsystem) + "` ends it";
  }
  co_return fail(Errc::Refused,
                 mount->fence_lost + "; the dead mount stays, as its unmount would write to " +
                     volume_.status.device + ", and " + why,
                 std::move(hint));
}

// Its flush and its unmount write to whatever is there. A mount that adoption refuses may be a person's, and
// an unmount is what it needs, unless it would write to another file system.
asio::awaitable<Result<>> NvmeAttachment::check_before_leaving() {
  const Standing standing = volume_.look_at_standing();
  if (volume_.checked || standing.place != Place::Ours) co_return Result<>{};
  const auto adopted = co_await adopt();
  if (volume_.checked) co_return Result<>{};
  if (adopted) co_return fail(Errc::Unavailable, "no path to the target is live");
  const Errc kind = adopted.error().kind;
  if (kind == Errc::Unavailable || kind == Errc::TimedOut) co_return adopted;
  const std::string device = standing.top->source;
  const auto superblock = co_await volume_.seams.device.read_superblock(device);
  if (!superblock) co_return superblock.take_error();
  co_return co_await check_not_exchanged(volume_.seams, volume_.settings, *standing.own, device, *superblock,
                                         false);
}

asio::awaitable<Result<>> NvmeAttachment::check_may_unmount() {
  if (auto current = check_device_is_current(); !current) co_return current;
  const CheckedMountPtr mount = volume_.checked;
  const Standing standing = volume_.look_at_standing();
  if (paths_.look() == Link::Down && volume_.writes_superblock(standing)) {
    const bool is_lost = mount && !mount->fence_lost.empty();
    co_return fail(is_lost ? Errc::Refused : Errc::Unavailable,
                   (is_lost ? mount->fence_lost + "; the dead mount stays: " : std::string()) +
                       "no path to the target is live, and unmounting " + volume_.settings.mount.native() +
                       " would write to it at any later time");
  }
  if (volume_.writes_superblock(standing)) {  // its link may be down, which the kernel notices later
    if (auto free = check_nothing_waits(); !free) co_return free;
    const auto answer = co_await volume_.seams.device.read_superblock(standing.top->source);
    if (!answer && answer.error().kind == Errc::TimedOut) co_return fail(answer.error());
  }
  if (!mount || standing.place != Place::Broken) co_return Result<>{};
  // Its programs may have kept it since it broke, and its unmount may write its superblock.
  if (mount->is_writer && mount->fence_lost.empty() && paths_.look() == Link::Live) {
    auto taken = co_await fence_.who_took_over(mount);
    if (!taken && volume_.writes_superblock(standing))
      co_return fail(Errc::Unavailable,
                     "whether another host has taken it over is not known: " + taken.error().what);
    if (taken && !taken->empty()) co_await fence_.lose(mount, std::move(*taken));
    if (volume_.checked != mount)
      co_return fail(Errc::Unavailable, "another mount was made there meanwhile", "try again");
  }
  if (mount->fence_lost.empty()) co_return Result<>{};
  if (auto free = check_nothing_waits(); !free) co_return free;
  if (auto stopped = co_await fence_.stop(mount); !stopped)
    co_return fail(Errc::Refused, mount->fence_lost + "; the dead mount stays: " + stopped.error().what);
  if (mount->is_exchanged) {
    const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
    if (!superblock) co_return superblock.take_error();
    mount->is_exchanged = superblock->uuid != mount->uuid;
    if (!mount->is_exchanged) {  // its own disk is back: only another host's writes since may forbid it
      mount->fence_lost.clear();
      co_return co_await check_may_unmount();
    }
  } else {
    if (!volume_.writes_superblock(standing)) co_return Result<>{};
    // Only the other host's reservation keeps the old superblock off the disk.
    const auto holding = co_await fence_.ask_namespace(ReservationAct::Look);
    if (!holding) co_return fail(holding.error());
    // It can't distinguish a copy of this host from it.
    if (holding->hold == nvmetcp::Hold::Theirs && !holding->cloned_id) co_return Result<>{};
  }
  co_return co_await cut_off(mount);
}

}  // namespace spark::volumes
