// What keeps other writers out of an exclusive volume: an NVMe reservation where the namespace offers it, and
// multi-mount protection where the file system has it. Armed before the mount, watched while it lasts.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

using nvmetcp::Hold;
using nvmetcp::Holding;

bool Volume::is_fenced() const {
  return settings_.nvme && settings_.access == config::Access::Exclusive &&
         settings_.fence != config::Fence::None;
}

bool Volume::is_alone() const {
  return is_fenced() && !status_.fence.reservation;
}

asio::awaitable<Result<Holding>> Volume::ask_reservation(ReservationAct act) {
  if (!wants_reservation(settings_)) co_return Holding{};
  ReservationRequest request{act, status_.device, {settings_.nvme->subsystem, settings_.nvme->nsid}};
  auto answer = co_await actions_->reservation(std::move(request));
  co_return answer;
}

// "host 'spark1' with host ID 1111…": as far as it can be known.
std::string Volume::name_holder(const Holding& holding, const mounts::Superblock& superblock) const {
  const std::string node =
      superblock.mmp_open && superblock.mmp_node != actions_->node_name() && !superblock.mmp_node.empty()
          ? "host '" + printable(superblock.mmp_node) + "'"
          : "";
  if (holding.hold != Hold::Theirs) return node.empty() ? "another host" : node;
  if (holding.cloned_id) return "another machine with this host's own host ID " + holding.holder;
  return (node.empty() ? "the host" : node) + " with host ID " + holding.holder;
}

Error Volume::held_elsewhere(const Holding& holding, const mounts::Superblock& superblock) {
  status_.fence.held_by = name_holder(holding, superblock);
  const std::string take = "`sudo spark-stage volumes take " + settings_.name + "` takes it over";
  if (holding.cloned_id) {
    return {Errc::Refused, status_.fence.held_by + " holds the reservation of " + namespace_name(),
            "one of the two is a copy of the other: on the copy `sudo spark-stage volumes down`, then `sudo "
            "spark-stage host new-identity`; if it was this host, before its machine ID or board changed, " +
                take};
  }
  if (holding.hold == Hold::Theirs) {
    return {Errc::Refused, status_.fence.held_by + " holds the reservation of " + namespace_name(),
            "`spark-stage volumes down` there gives it back; if that host is gone for good, " + take};
  }
  const std::string ours = holding.hold == Hold::Ours
                               ? ", although this host ID holds the reservation: is it a copy of another's? "
                                 "(`sudo spark-stage host new-identity` makes a fresh one)"
                               : "";
  return {Errc::Refused,
          namespace_name() + ": " + status_.fence.held_by + " has it open for writing, or died while it had" +
              ours,
          "unmount it there; if that host is gone for good, " + take};
}

// There is a fence of the kind that the configuration asks for.
Result<> Volume::check_fence_offered(const Holding& holding, const mounts::Superblock& superblock) const {
  const bool reservation = holding.hold != Hold::Unsupported;
  if (settings_.fence == config::Fence::Reservation && !reservation) {
    return fail(Errc::Refused,
                "volume " + settings_.name + " asks for an NVMe reservation, and " + namespace_name() +
                    " offers none",
                "switch reservations on at the target (nvmet: resv_enable), or use `fence: mmp` with an ext4 "
                "that has MMP");
  }
  if (superblock.has_mmp || (reservation && settings_.fence != config::Fence::Mmp)) return {};
  return fail(Errc::Refused,
              "exclusive access to " + namespace_name() + " is not fenced: it has no reservation, and its " +
                  superblock.type + " no multi-mount protection",
              superblock.type == "ext4"
                  ? "on one host, unmounted: `tune2fs -O mmp DEVICE`; or, if no other host can mount it, "
                    "`fence: none`"
                  : "use ext4 with MMP; or, if no other host can mount it, `fence: none`");
}

// Nobody else holds it or has it open for writing. A file system that its writer did not close is this host's
// own only if something says so: its node name, or a reservation that outlived the crash, with a key that no
// copy of this host has.
Result<> Volume::check_not_held(const Holding& holding, const mounts::Superblock& superblock) {
  if (holding.hold == Hold::Theirs) return fail(held_elsewhere(holding, superblock));
  const bool elsewhere = superblock.has_mmp
                             ? superblock.mmp_open && superblock.mmp_node != actions_->node_name()
                             : superblock.being_written && (holding.hold != Hold::Ours || holding.former_key);
  if (elsewhere) return fail(held_elsewhere(holding, superblock));
  return {};
}

// Before the mount.
asio::awaitable<Result<>> Volume::arm_fence(mounts::Superblock superblock) {
  status_.fence = {};
  is_fresh_hold_ = false;
  if (!is_fenced()) co_return Result<>{};
  const auto before = co_await ask_reservation(ReservationAct::Look);
  if (!before) co_return fail(before.error());
  if (auto offered = check_fence_offered(*before, superblock); !offered) co_return offered;
  const auto unheld = check_not_held(*before, superblock);
  if (!unheld && !is_taking_) co_return unheld;
  if (!unheld) taken_from_ = status_.fence.held_by;
  status_.fence = {false, superblock.has_mmp, ""};
  if (before->hold == Hold::Unsupported) co_return Result<>{};

  const auto now = co_await ask_reservation(is_taking_ ? ReservationAct::Take : ReservationAct::Hold);
  if (!now) co_return fail(now.error());
  if (now->hold != Hold::Ours) co_return fail(held_elsewhere(*now, superblock));
  status_.fence.reservation = true;
  const bool is_same_id = before->cloned_id || before->former_key;
  if (is_taking_ && (before->hold == Hold::Theirs || is_same_id))
    co_await wait_for_late_writes(superblock, is_same_id);
  is_fresh_hold_ = before->hold != Hold::Ours && !is_taking_;
  co_return Result<>{};
}

// Writes that the target had accepted before the takeover, and whose data a frozen host still owes it, end
// with that host's connection: its keep-alive fails. A copy of this host, which the target can't tell from
// it, stops when its daemon sees the new key. Multi-mount protection may wait for longer anyway.
asio::awaitable<void> Volume::wait_for_late_writes(mounts::Superblock superblock, bool is_same_id) {
  const Duration keep_alives = 3 * target_->keep_alive;
  const Duration longest = is_same_id ? std::max<Duration>(keep_alives, 3 * pace_.probe) : keep_alives;
  if (superblock.has_mmp && mounts::mmp_wait(superblock, false) >= longest) co_return;
  set_state(working_state(State::Connecting), "waiting until the other host's last writes have ended");
  const SteadyTime end = clock_.steady() + longest;
  while (clock_.steady() < end && !stopped_)
    co_await sleep(std::chrono::ceil<Duration>(end - clock_.steady()));
}

// Mounted already when the daemon started. Another host may have taken over, and given back, meanwhile.
asio::awaitable<Result<>> Volume::adopt_fence(mounts::Superblock superblock) {
  const auto before = co_await ask_reservation(ReservationAct::Look);
  if (!before) co_return fail(before.error());
  if (auto offered = check_fence_offered(*before, superblock); !offered) co_return offered;
  if (before->hold == Hold::Theirs) {
    Error error = held_elsewhere(*before, superblock);
    co_await lose_fence(error.what);
    co_return fail(std::move(error));
  }
  // With multi-mount protection the kernel itself ends a mount that another host has written under; its host
  // name may have changed since.
  if (before->hold == Hold::Free && !before->restarted && !superblock.has_mmp) {
    co_return fail(Errc::Refused,
                   settings_.mount.native() +
                       " is mounted for writing, and this host does not hold the reservation of " +
                       namespace_name(),
                   "unmount it, then it is mounted under the reservation by itself");
  }
  const auto now = co_await ask_reservation(ReservationAct::Hold);
  if (!now) co_return fail(now.error());
  status_.fence = {now->hold == Hold::Ours, superblock.has_mmp, ""};
  co_return Result<>{};
}

// After a mount that failed.
asio::awaitable<void> Volume::give_back() {
  auto given = co_await give_back_reservation(*actions_, settings_);
  if (!given.still_reserved.empty()) status_.warnings.push_back(std::move(given.still_reserved));
  status_.fence.reservation = false;
}

// Why this host may not write any more; empty: it may.
std::string Volume::why_fence_is_lost(const ProbeAnswer& answer) {
  if (answer.holding && answer.holding->hold == Hold::Theirs) {
    mounts::Superblock seen;
    seen.mmp_open = true;
    seen.mmp_node = answer.mmp_node;
    status_.fence.held_by = name_holder(*answer.holding, seen);
    return status_.fence.held_by + " has taken over " + namespace_name();
  }
  if (!answer.mmp_node.empty()) {
    if (mmp_node_.empty()) mmp_node_ = answer.mmp_node;
    if (mmp_node_ != answer.mmp_node)
      return "host '" + printable(answer.mmp_node) + "' has opened " + namespace_name() + " for writing too";
  }
  if (!answer.holding) return "";
  const Holding& holding = *answer.holding;
  if (holding.hold == Hold::Free)
    return "the reservation of " + namespace_name() + " was taken from this host";
  if (holding.hold == Hold::Unsupported && !status_.fence.mmp)
    return namespace_name() + " offers no reservations any more, and nothing else keeps other writers out";
  if (holding.hold == Hold::Unsupported && status_.fence.reservation) {
    status_.warnings.push_back(namespace_name() +
                               " offers no reservations any more: only multi-mount protection is left");
  }
  status_.fence.reservation = holding.hold == Hold::Ours;
  return "";
}

// A file system that shut itself down: because the target refuses its writes?
asio::awaitable<std::string> Volume::who_took_over() {
  if (!wants_reservation(settings_) || look_at_paths() != Link::Live) co_return "";
  ProbeAnswer answer;
  const auto now = co_await ask_reservation(ReservationAct::Look);
  if (!now || now->hold != Hold::Theirs) co_return "";
  answer.holding = *now;
  co_return why_fence_is_lost(answer);
}

// What is not flushed would only damage what the other host writes now.
asio::awaitable<void> Volume::lose_fence(std::string reason) {
  fence_lost_ = std::move(reason);
  is_broken_ = true;
  const auto stopped = co_await actions_->stop_writing(settings_.mount, status_.device);
  fence_lost_ += stopped ? "; writing was stopped here at once" : "; " + stopped.error().what;
  outage_starts(fence_lost_);
  set_state(State::Refused, fence_lost_);
}

// A writable mount that was there before this daemon, and a device that holds another file system than it by
// now.
asio::awaitable<void> Volume::stop_writing_to(std::string other_uuid) {
  const auto mounted = co_await actions_->mounted_state(settings_.mount);
  if (!mounted || mounted->uuid.empty() || mounted->uuid == other_uuid) co_return;
  co_await leave_other_filesystem(status_.device + " holds another file system than " + mounted->uuid +
                                  ", which is mounted");
}

// Before 6.15 Linux writes an ext4's superblock when it unmounts it, also of one that was shut down: over
// that of the other file system. A mount whose device is gone can't.
asio::awaitable<void> Volume::leave_other_filesystem(std::string reason) {
  is_exchanged_ = true;
  co_await lose_fence(std::move(reason));
  if (!actions_->subsystem_shared()) co_await cut_off();
}

asio::awaitable<void> Volume::cut_off() {
  const auto gone =
      co_await disconnect_subsystem(*actions_, settings_.nvme->subsystem, nvmetcp::Users::CutOff);
  if (!gone.outcome) log::survived(gone.outcome.error());
}

// Other volumes may have needed the connection until now; or the file system is back.
asio::awaitable<Result<>> Volume::check_may_unmount() {
  if (!is_exchanged_ || look_at_mount() != Place::Broken) co_return Result<>{};
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await actions_->read_superblock(status_.device);
  if (!superblock) co_return fail(superblock.error());
  const auto pinned = actions_->pinned_identity();
  is_exchanged_ = !pinned || superblock->uuid != pinned->uuid;
  if (!is_exchanged_) co_return Result<>{};
  if (actions_->subsystem_shared()) {
    co_return fail(Errc::Refused,
                   fence_lost_ +
                       "; the dead mount stays, as its unmount would write to the other file system, "
                       "and other volumes use the connection",
                   "take the other volumes of subsystem " + printable(settings_.nvme->subsystem) +
                       " down, then it is cut off");
  }
  co_await cut_off();
  co_return Result<>{};
}

// Ends when it is taken over, with whom from, or with why it can't be.
asio::awaitable<Result<std::string>> Volume::ask_take() {
  const auto self = shared_from_this();
  if (!is_fenced()) {
    co_return fail(Errc::Refused,
                   "volume " + settings_.name + " can't be taken over: it is not exclusive, or has no fence",
                   "taking over is for `access: exclusive` with another `fence` than none");
  }
  if (status_.state == State::Ready) co_return std::string();
  if (look_at_mount() == Place::Ours) {
    co_return fail(Errc::Unavailable, "volume " + settings_.name + " is mounted here, and is " +
                                          to_string(status_.state) + ": " + status_.reason);
  }
  Intent up;
  if (auto recorded = co_await record(std::move(up)); !recorded) co_return recorded.take_error();
  wanted_up_ = is_take_asked_ = true;
  tried_ = false;
  taken_from_.clear();
  take_answer_.reset();
  backoff_.reset();
  wake();
  while (!take_answer_ && !stopped_) co_await wait_for_answer();
  if (!take_answer_) co_return fail(Errc::Cancelled, "volume " + settings_.name + " left the configuration");
  if (!*take_answer_) co_return fail(take_answer_->error());
  co_return taken_from_;
}

void Volume::answer_take(const Result<>& result) {
  is_taking_ = false;
  take_answer_ = result;
  answered_.cancel();
}

}  // namespace spark::volumes
