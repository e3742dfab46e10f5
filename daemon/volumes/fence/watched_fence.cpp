// The fence of a mount while it lasts: judged from each probe.
#include "base/text.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

using nvmetcp::Hold;

namespace {

// It needs no room. An older one may be of an earlier mount that looks the same.
asio::awaitable<void> forget_record(VolumeStore& store) {
  if (!store.saved(Record::Held).empty()) (void)co_await store.save(Record::Held, {});
}

}  // namespace

// Whether another host has mounted it for writing since the last probe that found this host's fence intact.
// Each such mount counts up in an ext4. It changes the superblock of an xfs as well (announce_writer), but
// this host's own writes may do that too. A takeover waits for the other host's last writes, three
// keep-alives, before it mounts.
bool Fence::was_mounted_elsewhere(const CheckedMount& mount, std::uint64_t stamp,
                                  std::uint64_t mounts) const {
  if (mount.held_stamp == 0 || stamp == 0) return false;
  if (mounts != 0 && mount.held_mounts != 0) return mounts != mount.held_mounts;
  const Duration takeover = 3 * volume_.target->options.keep_alive;
  const auto since_wall = volume_.clock.wall() - mount.held_at_wall;
  const bool is_recent =
      volume_.clock.steady() - mount.held_at < takeover && since_wall < takeover && since_wall >= Duration(0);
  return stamp != mount.held_stamp && !is_recent;
}

asio::awaitable<std::string> Fence::why_lost(CheckedMountPtr mount, ProbeAnswer answer) {
  if (answer.holding && answer.holding->hold == Hold::Free && answer.holding->restarted) {
    const bool is_taken =
        mount->is_writer && !mount->fence.mmp && was_mounted_elsewhere(*mount, answer.stamp, answer.mounts);
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
  if (answer.holding && answer.holding->hold == Hold::Theirs) {
    mounts::Superblock seen;
    seen.mmp_open = true;
    seen.mmp_node = answer.mmp_node;
    volume_.status.fence.held_by = name_holder(*answer.holding, seen);
    return volume_.status.fence.held_by + " has taken over " + namespace_name(volume_);
  }
  if (!answer.mmp_node.empty()) {
    if (mount.mmp_node.empty()) mount.mmp_node = answer.mmp_node;
    if (mount.mmp_node != answer.mmp_node)
      return "host '" + printable(answer.mmp_node) + "' has opened " + namespace_name(volume_) +
             " for writing too";
  }
  if (!answer.holding) return "";
  if (answer.holding->hold == Hold::Free)
    return "the reservation of " + namespace_name(volume_) + " was taken from this host";
  if (answer.holding->hold == Hold::Unsupported && !mount.fence.mmp)
    return namespace_name(volume_) +
           " offers no reservations any more, and nothing else keeps other writers out";
  return "";
}

// Recorded as well, for the next daemon: the target may forget the reservation while none runs.
asio::awaitable<void> Fence::note_held(CheckedMountPtr mount, ProbeAnswer answer) {
  if (!answer.holding) co_return;
  const bool is_ours = answer.holding->hold == Hold::Ours;
  volume_.status.fence = {is_ours, mount->fence.mmp, ""};
  mount->fence.reservation = mount->fence.reservation || is_ours;
  const bool is_weaker = !is_ours && mount->fence.reservation;
  volume_.status.warn(Warning::OnlyMmp, is_weaker ? namespace_name(volume_) +
                                                        " offers no reservations any more: only multi-mount "
                                                        "protection is left"
                                                  : "");
  if (mount->is_changing_writing) co_return;
  const bool is_counted = answer.mounts != 0;
  const bool is_new = is_counted ? answer.mounts != mount->held_mounts : answer.stamp != mount->held_stamp;
  mount->held_stamp = answer.stamp;
  mount->held_mounts = answer.mounts;
  mount->held_at = volume_.clock.steady();
  mount->held_at_wall = volume_.clock.wall();
  if (!is_new || !is_ours || mount->fence.mmp) co_return;
  json::object record{{"mount", mount->mount.text()},
                      {"stamp", static_cast<std::int64_t>(answer.stamp)},
                      {"mounts", static_cast<std::int64_t>(answer.mounts)}};
  const auto saved = co_await volume_.seams.store.save(Record::Held, std::move(record));
  if (!saved) co_await forget_record(volume_.seams.store);
}

asio::awaitable<void> Fence::forget_held() {
  if (volume_.checked) {
    volume_.checked->held_stamp = volume_.checked->held_mounts = 0;
    volume_.checked->mmp_node.clear();
  }
  co_await forget_record(volume_.seams.store);
}

// False: nothing is recorded of this mount.
bool Fence::recall_held(CheckedMount& found) const {
  const json::object record = volume_.seams.store.saved(Record::Held);
  if (get_string(record, "mount") != found.mount.text()) return false;
  found.held_stamp = static_cast<std::uint64_t>(get_int(record, "stamp").value_or(0));
  found.held_mounts = static_cast<std::uint64_t>(get_int(record, "mounts").value_or(0));
  return true;
}

asio::awaitable<std::string> Fence::who_took_over(CheckedMountPtr mount) {
  if (!wants_reservation(volume_.settings)) co_return "";
  ProbeAnswer answer;
  const auto now = co_await ask(ReservationAct::Look);
  if (!now || now->hold != Hold::Theirs) co_return "";
  answer.holding = *now;
  co_return why_taken(*mount, answer);
}

// The file system may lie below another mount, where its path does not lead.
asio::awaitable<Result<>> Fence::stop(CheckedMountPtr mount) {
  if (mount->is_stopped) co_return Result<>{};
  auto stopped = co_await volume_.seams.device.stop_writing(mount->mount, mount->device);
  mount->is_stopped = stopped.has_value();
  co_return stopped;
}

asio::awaitable<void> Fence::lose(CheckedMountPtr mount, std::string reason) {
  mount->fence_lost = reason;
  mount->is_broken = true;
  const auto stopped = co_await stop(mount);
  mount->fence_lost =
      std::move(reason) + (stopped ? "; writing was stopped here at once" : "; " + stopped.error().what);
  outages_.begin(mount->fence_lost);
  volume_.set_state(State::Refused, mount->fence_lost);
}

}  // namespace spark::volumes
