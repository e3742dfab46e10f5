// The fence of a mount while it lasts: judged from each probe.
#include "base/text.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

using nvmetcp::Hold;

// Whether another host has mounted it for writing since the last probe that found this host's fence intact.
// Each such mount counts up in an ext4. It changes the superblock of an xfs as well (announce_writer), but
// this host's own writes may do that too. A takeover waits for the other host's last writes, three
// keep-alives, before it mounts.
bool Fence::was_mounted_elsewhere(const CheckedMount& mount, const mounts::Superblock& now) const {
  if (mount.held_stamp == 0 || now.stamp == 0) return false;
  if (now.mounts != 0 && mount.held_mounts != 0) return now.mounts != mount.held_mounts;
  const Duration takeover = 3 * volume_.target->options.keep_alive;
  const auto since_wall = volume_.clock.wall() - mount.held_at_wall;
  const bool is_recent =
      volume_.clock.steady() - mount.held_at < takeover && since_wall < takeover && since_wall >= Duration(0);
  return now.stamp != mount.held_stamp && !is_recent;
}

asio::awaitable<std::string> Fence::why_lost(CheckedMountPtr mount, ProbeAnswer answer) {
  if (answer.holding && answer.holding->hold == Hold::Free && answer.holding->restarted) {
    const bool is_taken =
        mount->is_writer && !mount->has_mmp && was_mounted_elsewhere(*mount, answer.superblock);
    if (is_taken)
      co_return "the target forgot the reservation of " + namespace_name(volume_) +
          ", and another host has written it since";
    const auto now = co_await ask(ReservationAct::Hold);
    if (!now) co_return "";
    answer.holding = *now;
  }
  if (!mount->is_writer) {  // it needs no fence: it detects other hosts' writes like any reader
    volume_.status.fence.reservation = answer.holding && answer.holding->hold == Hold::Ours;
    co_return "";
  }
  auto taken = why_taken(*mount, answer);
  if (taken.empty()) co_await note_held(mount, std::move(answer));
  co_return taken;
}

std::string Fence::why_taken(CheckedMount& mount, const ProbeAnswer& answer) {
  const mounts::Superblock& seen = answer.superblock;
  if (answer.holding && answer.holding->hold == Hold::Theirs) {
    mounts::Superblock theirs = seen;
    theirs.mmp_open = true;
    volume_.status.fence.held_by = name_holder(*answer.holding, theirs);
    return volume_.status.fence.held_by + " has taken over " + namespace_name(volume_);
  }
  if (!seen.mmp_node.empty()) {
    if (mount.mmp_node.empty()) mount.mmp_node = seen.mmp_node;
    if (mount.mmp_node != seen.mmp_node)
      return "host '" + printable(seen.mmp_node) + "' has opened " + namespace_name(volume_) +
             " for writing too";
  }
  if (!answer.holding) return "";
  if (answer.holding->hold == Hold::Free)
    return "the reservation of " + namespace_name(volume_) + " was taken from this host";
  if (answer.holding->hold == Hold::Unsupported && !mount.has_mmp)
    return namespace_name(volume_) +
           " offers no reservations any more, and nothing else keeps other writers out";
  return "";
}

// Recorded as well, for the next daemon: the target may forget the reservation while none runs.
asio::awaitable<void> Fence::note_held(CheckedMountPtr mount, ProbeAnswer answer) {
  if (!answer.holding) co_return;
  const mounts::Superblock& seen = answer.superblock;
  const bool is_ours = answer.holding->hold == Hold::Ours;
  if (is_ours) volume_.status.warn(Warning::OnlyMmp, "");
  if (!is_ours && volume_.status.fence.reservation)
    volume_.status.warn(
        Warning::OnlyMmp,
        namespace_name(volume_) + " offers no reservations any more: only multi-mount protection is left");
  volume_.status.fence = {is_ours, ""};
  if (mount->is_changing_writing) co_return;
  const bool is_counted = seen.mounts != 0;
  const bool is_new = is_counted ? seen.mounts != mount->held_mounts : seen.stamp != mount->held_stamp;
  mount->held_stamp = seen.stamp;
  mount->held_mounts = seen.mounts;
  mount->held_at = volume_.clock.steady();
  mount->held_at_wall = volume_.clock.wall();
  if ((!is_new && mount->is_held_recorded) || !is_ours || mount->has_mmp) co_return;
  json::object record{{"mount", mount->mount.text()},
                      {"uuid", mount->uuid},
                      {"stamp", static_cast<std::int64_t>(seen.stamp)},
                      {"mounts", static_cast<std::int64_t>(seen.mounts)}};
  const auto saved = co_await volume_.seams.store.save(Record::Held, std::move(record));
  mount->is_held_recorded = saved.has_value();
  // It may have been forgotten while it was written.
  const bool is_over = volume_.checked != mount || mount->is_changing_writing || mount->held_stamp == 0;
  if (!saved || is_over) co_await forget_record();
}

// It needs no room. An older one may be of an earlier mount that looks the same.
asio::awaitable<void> Fence::forget_record() {
  if (volume_.checked) volume_.checked->is_held_recorded = false;
  if (!volume_.seams.store.saved(Record::Held).empty())
    (void)co_await volume_.seams.store.save(Record::Held, {});
}

asio::awaitable<void> Fence::forget_held() {
  if (volume_.checked) {
    volume_.checked->held_stamp = volume_.checked->held_mounts = 0;
    volume_.checked->mmp_node.clear();
  }
  co_await forget_record();
}

asio::awaitable<Result<std::string>> Fence::who_took_over(CheckedMountPtr mount) {
  const Error changed{Errc::Unavailable, "its mount has changed meanwhile", ""};
  if (volume_.seams.device.has_stuck_worker())
    co_return fail(Errc::Unavailable, mount->device + " does not answer");
  const config::NvmeSource& source = *volume_.settings.nvme;
  ProbeRequest request{volume_.settings.mount, mount->device, std::nullopt};
  if (wants_reservation(volume_.settings)) request.keep_reservation = {source.subsystem, source.nsid};
  const auto answer = co_await volume_.seams.device.probe(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (volume_.checked != mount) co_return fail(changed);
  std::string mounted = mount->uuid;
  if (answer->superblock.uuid != mounted)  // perhaps by `tune2fs -U`
    mounted = co_await mounted_filesystem(volume_.seams, mount->mount);
  if (volume_.checked != mount) co_return fail(changed);
  if (answer->superblock.uuid != mounted) {
    mount->is_exchanged = true;
    co_return holds_another(mount->device, answer->superblock.uuid);
  }
  if (wants_fence(volume_.settings)) {
    std::string lost = co_await why_lost(mount, *answer);
    co_return lost;
  }
  co_return std::string();
}

// The file system may lie below another mount, where its path does not lead.
asio::awaitable<Result<>> Fence::stop(CheckedMountPtr mount) {
  if (mount->is_stopped) co_return Result<>{};
  auto stopped = co_await volume_.seams.device.stop_writing(mount->mount, mount->device);
  mount->is_stopped = stopped.has_value();
  co_return stopped;
}

asio::awaitable<void> Fence::lose(CheckedMountPtr mount, std::string reason) {
  (void)volume_.look_at_standing();
  if (volume_.checked != mount) co_return;
  mount->fence_lost = reason;
  mount->is_broken = true;
  const auto stopped = co_await stop(mount);
  mount->fence_lost =
      std::move(reason) + (stopped ? "; writing was stopped here at once" : "; " + stopped.error().what);
  outages_.begin(mount->fence_lost);
  volume_.set_state(State::Refused, mount->fence_lost);
}

}  // namespace spark::volumes
