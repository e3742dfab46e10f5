#include "daemon/volumes/fence/fence.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

using nvmetcp::Hold;
using nvmetcp::ReservationState;

namespace {

// Checks that a fence of the configured kind is available.
Result<> check_offered(const VolumeContext& volume, const ReservationState& holding,
                       const mounts::Superblock& superblock) {
  const bool reservation = holding.hold != Hold::Unsupported;
  if (volume.settings.fence == config::Fence::Reservation && !reservation) {
    return fail(Errc::Refused,
                "volume " + volume.settings.name + " asks for an NVMe reservation, and " +
                    namespace_name(volume) + " offers none",
                "switch reservations on at the target (nvmet: resv_enable), or use `fence: mmp` with an ext4 "
                "that has MMP");
  }
  if (superblock.has_mmp || (reservation && volume.settings.fence != config::Fence::Mmp)) return {};
  return fail(Errc::Refused,
              "exclusive access to " + namespace_name(volume) +
                  " is not fenced: it has no reservation, and its " + superblock.type +
                  " no multi-mount protection",
              superblock.type == "ext4"
                  ? "on one host, unmounted: `tune2fs -O mmp DEVICE`; or, if no other host can mount it, "
                    "`fence: none`"
                  : "use ext4 with MMP; or, if no other host can mount it, `fence: none`");
}

// Every older mount of the device is of the state that a reader had mounted here last.
bool is_last_state(const VolumeContext& volume, const mounts::Superblock& superblock) {
  const auto pinned = volume.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  return pinned.uuid == superblock.uuid && pinned.stamp == superblock.stamp;
}

// A frozen host may still owe the data of writes that the target accepted before the takeover. They end with
// that host's connection: its keep-alive fails. A copy of this host, which the target can't distinguish from
// it, stops when its daemon sees the new key.
Duration longest_late_writes(const VolumeContext& volume, bool is_same_id) {
  const Duration keep_alives = 3 * volume.target->options.keep_alive;
  return is_same_id ? std::max<Duration>(keep_alives, 3 * volume.timings.probe) : keep_alives;
}

// Another host has taken the volume over. The target refuses the writes of such a mount only until that host
// gives the reservation back, and then they would go over its newer state.
asio::awaitable<void> stop_elsewhere(VolumeContext& volume) {
  const auto mount = writer_elsewhere(volume.seams, volume.settings);
  if (!mount) co_return;
  const auto state = co_await volume.seams.device.mounted_state(mount->target(), mount->numbers());
  if (state && state->is_shut_down) co_return;
  const auto stopped = co_await volume.seams.device.stop_writing(*mount, volume.status.device);
  if (stopped) {
    log::warning("volume " + volume.settings.name +
                 ": another host has taken it over, so writing was stopped at " +
                 printable(mount->target().native()) + ", where its device is mounted too");
  } else {
    log::survived(stopped.error());
  }
}

// False: nothing is recorded of this mount of this file system.
bool recall_held(const VolumeContext& volume, CheckedMount& found) {
  const json::object record = volume.seams.store.saved(Record::Held);
  const bool is_its = get_string(record, "mount") == found.mount.text() &&
                      get_string(record, "uuid").value_or(found.uuid) == found.uuid;
  if (!is_its) return false;
  found.held_stamp = static_cast<std::uint64_t>(get_int(record, "stamp").value_or(0));
  found.held_mounts = static_cast<std::uint64_t>(get_int(record, "mounts").value_or(0));
  return true;
}

}  // namespace

Fence::Fence(VolumeContext& volume, Outages& outages) : volume_(volume), outages_(outages) {
  if (!volume_.target) return;  // NFS, perhaps with the record of an earlier volume of its name
  const auto late = get_int(volume_.seams.store.saved(Record::LateWrites), "until_s");
  const auto left = WallTime(std::chrono::seconds(late.value_or(0))) - volume_.clock.wall();
  if (left.count() <= 0) return;
  const auto longest = 2 * longest_late_writes(volume_, true);  // the clock may have been set back
  late_until_ = volume_.clock.steady() + std::min(std::chrono::ceil<Duration>(left), longest);
}

asio::awaitable<Result<ReservationState>> Fence::ask(ReservationAct act) {
  if (!wants_reservation(volume_.settings)) co_return ReservationState{};
  co_return co_await ask_namespace(act);
}

asio::awaitable<Result<ReservationState>> Fence::ask_namespace(ReservationAct act) {
  const config::NvmeSource& source = *volume_.settings.nvme;
  ReservationRequest request{act, volume_.status.device, {source.subsystem, source.nsid}};
  co_return co_await volume_.seams.reserve(std::move(request));
}

// The target forgot the reservation while this host had the file system mounted for writing, as nvmet does
// when a namespace is disabled briefly: the dead mount is still there, of this very file system, and no other
// host has mounted it since.
bool Fence::is_forgotten_hold(const ReservationState& holding, const mounts::Superblock& superblock) {
  const Standing standing = volume_.look_at_standing();
  if (holding.hold != Hold::Free || !holding.restarted || standing.place != Place::Dead) return false;
  CheckedMountPtr mount = volume_.checked;
  if (!mount) {  // of an earlier daemon
    CheckedMount found(*standing.own);
    found.uuid = superblock.uuid;
    found.is_writer = recall_held(volume_, found);
    mount = std::make_shared<CheckedMount>(std::move(found));
  }
  return mount->is_writer && mount->uuid == superblock.uuid && mount->fence_lost.empty() &&
         mount->held_stamp != 0 && !was_mounted_elsewhere(*mount, superblock);
}

// Checks that no other host holds it or has it open for writing. If its writer did not close it, one of these
// must prove that this host was the writer: its node name; a reservation that survived the crash, with a key
// that no copy of this host has; or the dead mount that wrote it.
Result<> Fence::check_not_held(const ReservationState& holding, const mounts::Superblock& superblock) {
  if (holding.hold == Hold::Theirs) return fail(held_elsewhere(holding, superblock));
  const bool is_own_hold =
      (holding.hold == Hold::Ours && !holding.former_key) || is_forgotten_hold(holding, superblock);
  const bool elsewhere =
      superblock.has_mmp ? superblock.mmp_open && superblock.mmp_node != volume_.seams.neighbours.node_name()
                         : superblock.being_written && !is_own_hold;
  if (elsewhere) return fail(held_elsewhere(holding, superblock));
  return {};
}

asio::awaitable<Result<>> Fence::arm(mounts::Superblock superblock, Role role) {
  const bool is_writer = role != Role::Reader, takes = role == Role::Taker;
  volume_.status.fence = {};
  const auto before = co_await ask(ReservationAct::Look);
  if (!before) co_return fail(before.error());
  if (before->hold == Hold::Theirs && !before->cloned_id) co_await stop_elsewhere(volume_);
  volume_.status.warn(Warning::StillReserved, "");
  bool was_open = false;  // by a host that may still owe writes, also if the target forgot its reservation
  const Error older = mounted_before(volume_.seams, volume_.settings, volume_.status.device);
  if (!is_writer && superblock.is_claimed && !is_last_state(volume_, superblock)) co_return fail(older);
  if (!wants_fence(volume_.settings)) co_return Result<>{};
  if (is_writer) {
    if (auto offered = check_offered(volume_, *before, superblock); !offered) co_return offered;
    const auto unheld = check_not_held(*before, superblock);
    was_open = !unheld;
    if (was_open && !takes) co_return unheld;
    // An older mount is current only if no other host can have written since. Found out before this host
    // holds the reservation, which would look like a proof later.
    const bool may_be_older = before->hold == Hold::Free || before->hold == Hold::Theirs;
    if (superblock.is_claimed && may_be_older) co_return fail(older);
    if (was_open) taken_from_ = std::exchange(volume_.status.fence.held_by, "");
  }
  const bool is_needed = is_writer || before->hold == Hold::Free || before->hold == Hold::Ours;
  if (before->hold != Hold::Unsupported && is_needed) {
    is_fresh_hold_ = !takes && (before->hold != Hold::Ours || is_fresh_hold_);
    const bool is_same_id = before->cloned_id || before->former_key;
    const bool takes_over = takes && (was_open || before->hold == Hold::Theirs || is_same_id);
    if (takes_over) {
      auto recorded = co_await expect_late_writes(is_same_id);
      // The other host's own mark in a multi-mount protection tells the next attempt as well.
      const bool is_marked = superblock.has_mmp && !is_same_id;
      if (!recorded && !is_marked) co_return recorded;
    }
    const auto now = co_await ask(takes ? ReservationAct::Take : ReservationAct::Hold);
    if (!now) co_return fail(now.error());
    if (now->hold != Hold::Ours && is_writer) co_return fail(held_elsewhere(*now, superblock));
    volume_.status.fence.reservation = now->hold == Hold::Ours;
    if (takes_over) late_until_ = volume_.clock.steady() + longest_late_writes(volume_, is_same_id);
    if (auto ended = co_await wait_for_late_writes(superblock); !ended) co_return ended;
  }
  co_return Result<>{};
}

// Before the takeover: its answer may get lost, its daemon may end, or this host may boot, and the next
// attempt finds it done.
asio::awaitable<Result<>> Fence::expect_late_writes(bool is_same_id) {
  const Duration longest = 2 * longest_late_writes(volume_, is_same_id);
  const auto until = std::chrono::ceil<std::chrono::seconds>(volume_.clock.wall() + longest);
  json::object record{{"until_s", until.time_since_epoch().count()}};
  auto saved = co_await volume_.seams.store.save(Record::LateWrites, std::move(record));
  if (!saved)
    co_return fail_with(std::move(saved.error()),
                        "nothing was taken over: recording the wait for the other host's last writes");
  late_until_ = volume_.clock.steady() + longest;
  co_return Result<>{};
}

// Multi-mount protection may wait longer anyway. The target may forget the reservation during the wait, and
// another host may mount the file system: then nothing that this attempt has found is true any more.
asio::awaitable<Result<>> Fence::wait_for_late_writes(mounts::Superblock before) {
  const Duration longest = std::chrono::ceil<Duration>(late_until_ - volume_.clock.steady());
  if (longest <= Duration(0) || (before.has_mmp && mounts::mmp_wait(before, false) >= longest))
    co_return Result<>{};
  volume_.say(State::Connecting, "waiting until the other host's last writes have ended");
  while (volume_.clock.steady() < late_until_ && !volume_.is_left())
    co_await volume_.sleep(std::chrono::ceil<Duration>(late_until_ - volume_.clock.steady()));
  if (volume_.clock.steady() < late_until_) co_return fail(asked_down(volume_));
  auto held = co_await ask(ReservationAct::Look);
  if (held && held->hold == Hold::Free) {
    const auto now = co_await volume_.seams.device.read_superblock(volume_.status.device);
    if (!now) co_return fail(now.error());
    const bool is_counted = now->mounts != 0 && before.mounts != 0;
    const bool is_same = is_counted ? now->mounts == before.mounts : now->stamp == before.stamp;
    if (!is_same || now->uuid != before.uuid)
      co_return fail(Errc::Unavailable, "the target forgot the reservation of " + namespace_name(volume_) +
                                            " during the wait, and its file system was written meanwhile");
    held = co_await ask(ReservationAct::Hold);
  }
  if (!held) co_return fail(held.error());
  if (held->hold == Hold::Theirs) co_return fail(held_elsewhere(*held, before));
  co_return Result<>{};
}

asio::awaitable<Result<CheckedMount>> Fence::adopt(CheckedMount found, mounts::Superblock superblock) {
  auto holding = co_await ask(ReservationAct::Look);
  if (!holding) co_return fail(holding.error());
  if (auto offered = check_offered(volume_, *holding, superblock); !offered) co_return offered.take_error();
  if (holding->hold != Hold::Theirs) {
    volume_.status.fence = {holding->hold == Hold::Ours, ""};
    const bool was_held = recall_held(volume_, found);
    // Of a mount that was held, the first probe finds out whether this host may still write.
    if (was_held && !superblock.has_mmp) co_return found;
    // With multi-mount protection the kernel itself ends a mount after another host's writes; this host's
    // name may have changed since.
    if (holding->hold == Hold::Free && !holding->restarted && !superblock.has_mmp) {
      co_return fail(Errc::Refused,
                     volume_.settings.mount.native() +
                         " is mounted for writing, and this host does not hold the reservation of " +
                         namespace_name(volume_),
                     "unmount it; it is then mounted under the reservation automatically");
    }
    auto now = co_await ask(ReservationAct::Hold);
    if (!now) co_return fail(now.error());
    holding = std::move(now);
  }
  if (holding->hold == Hold::Theirs) {
    Error error = held_elsewhere(*holding, superblock);
    volume_.checked = std::make_shared<CheckedMount>(std::move(found));
    co_await lose(volume_.checked,
                  volume_.status.fence.held_by + " has taken over " + namespace_name(volume_));
    co_return fail(std::move(error));
  }
  volume_.status.fence.reservation = holding->hold == Hold::Ours;
  co_return found;
}

asio::awaitable<Error> Fence::explain(Error error, mounts::Superblock superblock) {
  if (wants_reservation(volume_.settings)) co_return error;
  const auto holding = co_await ask_namespace(ReservationAct::Look);
  if (!holding || holding->hold != Hold::Theirs) co_return error;
  Error held = held_elsewhere(*holding, superblock);
  held.hint =
      "`spark-stage volumes down` there gives it back; if that host is gone for good, `fence: auto` for "
      "volume " +
      volume_.settings.name + " and `sudo spark-stage volumes take " + volume_.settings.name +
      "` here take it over";
  co_return held;
}

asio::awaitable<void> Fence::disarm() {
  if (!is_fresh_hold_) co_return;
  auto given = co_await give_back_reservation(volume_.seams, volume_.settings);
  is_fresh_hold_ = !given.still_reserved.empty();
  volume_.status.warn(Warning::StillReserved, std::move(given.still_reserved));
  volume_.status.fence.reservation = false;
}

asio::awaitable<Result<>> Fence::check_still_ours(CheckedMountPtr mount) {
  const auto holding = co_await ask(ReservationAct::Hold);
  if (!holding) co_return fail(holding.error());
  const auto superblock = co_await volume_.seams.device.read_superblock(volume_.status.device);
  if (!superblock) co_return fail(superblock.error());
  if (holding->hold == nvmetcp::Hold::Theirs) co_return fail(held_elsewhere(*holding, *superblock));
  // The fence may have been configured since it was published.
  if (wants_fence(volume_.settings)) {
    if (auto offered = check_offered(volume_, *holding, *superblock); !offered) co_return offered;
  }
  volume_.status.fence = {holding->hold == Hold::Ours, ""};
  if (!superblock->damage.empty()) {
    co_return fail(Errc::Refused, "volume " + volume_.settings.name +
                                      " stays read-only: " + damaged(volume_, superblock->damage));
  }
  if (!superblock->being_written && superblock->stamp == mount->stamp) co_return Result<>{};
  co_return fail(Errc::Refused,
                 "volume " + volume_.settings.name + " was published, and another host has written it since",
                 "`spark-stage status` says whether it still does; nothing was changed");
}

}  // namespace spark::volumes
