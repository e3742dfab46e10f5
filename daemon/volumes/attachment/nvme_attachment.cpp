#include "daemon/volumes/attachment/nvme_attachment.hpp"

#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/attachment/nvme_checks.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

asio::awaitable<Result<>> NvmeAttachment::bring_up(bool takes) {
  co_await follow_rename(volume_);
  const auto found = co_await paths_.rivals().find_place();
  Place place = found.value_or(volume_.look_at_mount());
  if (place == Place::Unknown) co_return fail(Errc::Failed, "the mounts can't be read from mountinfo");
  if (auto current = check_device_is_current(); !current) co_return current;
  if (place == Place::Ours && paths_.look() != Link::Gone) {
    const auto left = co_await leave_publication();
    if (!left) co_return fail(left.error());
    if (!*left) co_return co_await adopt();
    place = Place::Empty;
  }
  if (place == Place::Broken) {
    // Its unmount, or a read before that, may wait for a target that has moved.
    if (paths_.look() == Link::Down) co_await paths_.tend_once();
    if (auto may = co_await check_may_unmount(); !may) co_return may;
    if (auto cleared = co_await mount_point_.clear_broken(); !cleared) co_return cleared;
    co_await fence_.forget_record();
  }

  auto reached = co_await paths_.reach();
  const bool was_away = std::exchange(is_away_, !reached);
  if (!reached) co_return reached;
  if (was_away) volume_.seams.neighbours.target_is_back();
  co_await paths_.rivals().remember();
  if (volume_.seams.device.has_stuck_worker()) {
    if (auto left = co_await paths_.leave_old_addresses(); !left) co_return left;
  }
  if (place == Place::Ours) {  // the device outlived its last controller: a new one may revive it
    if (volume_.look_at_mount() == Place::Ours) co_return co_await adopt();
    co_return fail(Errc::Unavailable,
                   "the device under " + volume_.settings.mount.native() + " did not come back");
  }
  auto block = co_await wait_for_namespace();
  if (auto alone = paths_.rivals().check_none(); !alone) co_return alone;
  if (!block) co_return block.take_error();
  co_return co_await check_and_mount(std::move(*block), takes);
}

Result<> NvmeAttachment::check_device_is_current() {
  const Standing standing = volume_.look_at_standing();
  if (standing.place != Place::Former) return {};
  const auto old = former_path(volume_.seams, volume_.settings, standing.top->device_number);
  if (!old) return {};
  return fail(Errc::Refused,
              volume_.settings.mount.native() + " is mounted from " + printable(standing.top->source) +
                  ", and target " + printable(volume_.target->name) + " shows another disk as " +
                  namespace_name(volume_) + "; " + old->name + " at " + to_string(old->portal) +
                  " is not live",
              end_old(*old));
}

asio::awaitable<Result<nvmetcp::Namespace>> NvmeAttachment::wait_for_namespace() {
  const SteadyTime began = volume_.clock.steady(), end = began + volume_.timings.namespace_wait;
  bool has_rescanned = false;
  for (;;) {
    auto block = own_namespace(volume_.seams, volume_.settings);
    is_namespace_missing_ = !block;
    if (block || volume_.clock.steady() >= end || volume_.is_left()) co_return block;
    if (!has_rescanned && volume_.clock.steady() - began >= volume_.timings.namespace_rescan) {
      has_rescanned = true;
      co_await paths_.rescan();
    }
    co_await volume_.sleep(volume_.timings.namespace_poll);
  }
}

asio::awaitable<Result<>> NvmeAttachment::check_and_mount(nvmetcp::Namespace block, bool takes) {
  Status& status = volume_.status;
  const Role role = takes ? Role::Taker : is_reader(volume_) ? Role::Reader : Role::Writer;
  const bool is_writer = role != Role::Reader;
  volume_.attempts.reads = !is_writer;
  status.device = "/dev/" + block.device;
  if (auto secured = paths_.check_secured(); !secured) co_return secured;
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await volume_.seams.device.read_superblock(status.device);
  if (!superblock) co_return superblock.take_error();
  status.filesystem_type = superblock->type;
  status.filesystem_uuid = superblock->uuid;
  if (auto same = check_identity(volume_, *superblock); !same) co_return same;
  if (auto safe = check_safe_to_mount(volume_, *superblock, is_writer); !safe) co_return safe;
  if (auto same = co_await check_other_mounts(volume_, block.device_number, superblock->uuid); !same)
    co_return same;
  if (volume_.is_left()) co_return fail(asked_down(volume_));
  auto armed = co_await fence_.arm(*superblock, role);
  if (!armed) co_return armed;
  if (volume_.is_left()) {
    co_await fence_.disarm();
    co_return fail(asked_down(volume_));
  }
  co_return co_await mount(std::move(block), *superblock, is_writer);
}

mounts::MountRequest NvmeAttachment::request_for(const mounts::Superblock& superblock, bool is_writer) {
  mounts::MountRequest request;
  request.source = volume_.status.device;
  request.target = volume_.settings.mount;
  request.type = superblock.type;
  request.uuid = superblock.uuid;
  request.read_only = !is_writer;
  request.keeps_journal = !is_writer && volume_.settings.access == config::Access::Exclusive;
  request.options = volume_.settings.options;
  if (is_writer && is_fenced_by_mmp_alone() && superblock.has_mmp)
    request.claim_as = volume_.seams.neighbours.node_name();
  request.replaces = mount_point_.dead_mount();
  request.may_hide_files = mount_point_.may_hide_files();
  return request;
}

bool NvmeAttachment::is_fenced_by_mmp_alone() const {
  return wants_fence(volume_.settings) && !volume_.status.fence.reservation;
}

asio::awaitable<Result<>> NvmeAttachment::mount(nvmetcp::Namespace block, mounts::Superblock superblock,
                                                bool is_writer) {
  const auto wait =
      is_writer ? mounts::mmp_wait(superblock, is_fenced_by_mmp_alone()) : std::chrono::seconds(0);
  const std::string mmp_wait =
      wait.count() > 0 ? " (multi-mount protection waits " + std::to_string(wait.count()) + " s)" : "";
  volume_.say(State::Mounting,
              "mounting " + volume_.status.device + " on " + volume_.settings.mount.native() + mmp_wait);
  auto request = request_for(superblock, is_writer);
  FilesystemIdentity identity{superblock.type, superblock.uuid,  superblock.filesystem_bytes,
                              block.id(),      superblock.stamp, request.keeps_journal};
  const auto before = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  request.claim_s = static_cast<std::uint32_t>(wait.count());
  // A full state folder must not keep a volume down whose record is right already.
  FilesystemIdentity recorded = before;
  if (volume_.settings.access == config::Access::ReadOnly)
    recorded.is_published = false;  // of no meaning now
  const bool is_pinned = is_same_filesystem(recorded, identity);
  FilesystemIdentity to_pin;
  if (!is_pinned) to_pin = identity;
  // The kernel gives the number of a mount that is gone to this one. A dead mount keeps its own until then,
  // and its record is a proof if this attempt fails.
  if (volume_.look_at_mount() != Place::Dead) co_await fence_.forget_record();
  const auto mounted = co_await volume_.seams.mounts.mount(std::move(request), std::move(to_pin));
  if (!mounted) {
    // Releases the reservation for other hosts, unless an abandoned worker may still mount the volume.
    if (mounted.error().kind != Errc::TimedOut) co_await fence_.disarm();
    Error error = mounted.error();
    if (is_writer) {
      Error unexplained = error;
      error = co_await fence_.explain(std::move(unexplained), superblock);
    }
    co_return fail(with_the_dead_mount(std::move(error)));
  }
  volume_.attempts.left_behind = mounted->users;
  volume_.attempts.healed_by_us = true;
  const Standing standing = volume_.look_at_standing();
  if (!standing.own) co_return fail(Errc::Failed, "the mount vanished as soon as it was made");
  // Another program made it since the superblock was read, or a worker that was given up.
  if (mounted->change == Change::AlreadyThere) co_return co_await adopt_unknown(standing);
  fence_.keep();
  volume_.checked = std::make_shared<CheckedMount>(as_found(*standing.own, superblock, is_writer));
  if (is_pinned) {
    if (const auto pinned = co_await volume_.seams.store.pin(std::move(identity)); !pinned)
      log::survived(pinned.error());
  }
  warn_of_change(before, block);
  volume_.status.warn(Warning::Unannounced, mounted->warning);
  co_return Result<>{};
}

// A mount held for its users ends with them, so no person has to act.
Error NvmeAttachment::with_the_dead_mount(Error error) {
  if (volume_.look_at_mount() != Place::Dead) return error;
  if (error.kind == Errc::Refused) error.kind = Errc::Unavailable;
  return fail_with(std::move(error), "the dead mount stays").value();
}

// The same file system with another namespace ID: to the kernel it is a different disk after every restart of
// the target.
void NvmeAttachment::warn_of_change(const FilesystemIdentity& before, const nvmetcp::Namespace& block) {
  if (before.uuid != volume_.status.filesystem_uuid) return;  // another one was configured
  if (before.namespace_id.empty() || before.namespace_id == block.id()) return;
  volume_.status.warn(Warning::NamespaceId,
                      namespace_name(volume_) + " was " + before.namespace_id + " and is now " +
                          (block.id().empty() ? "without an ID" : block.id()) +
                          ", with the same file system: give it a fixed identity on the target "
                          "(nvmet: device_uuid, SPDK: -u), or "
                          "each restart there costs a remount here");
}

}  // namespace spark::volumes
