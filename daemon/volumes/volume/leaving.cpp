// How a volume leaves this host.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"
#include "daemon/volumes/volume/volume.hpp"

namespace spark::volumes {
namespace {

// What the steps of leaving use.
struct Parts {
  VolumeContext& volume;
  Paths& paths;
  Health& health;
  Fence& fence;
  NvmeAttachment& nvme;
  const Requests& requests;
};

// Another host may have taken the volume over, or its disk may have been replaced, and nothing more must be
// written. Returns whether the mount's state is known by now.
asio::awaitable<bool> stop_if_lost(Parts its) {
  VolumeContext& volume = its.volume;
  const CheckedMountPtr checked = volume.checked;
  if (volume.stopped || !checked || !checked->is_writer || checked->is_broken) co_return true;
  auto found = co_await its.health.look(volume.look_at_standing());
  checked->is_exchanged = checked->is_exchanged || found.verdict == Verdict::Exchanged;
  if (found.verdict == Verdict::Fenced || found.verdict == Verdict::Exchanged)
    co_await its.fence.lose(checked, std::move(found.reason));
  co_return found.verdict != Verdict::Silent&& found.verdict != Verdict::Unsure;
}

Error stays_mounted(VolumeContext& volume, Link link) {
  const std::string& device = volume.status.device;
  return {
      Errc::Unavailable,
      volume.settings.mount.native() + " stays mounted: " +
          (volume.seams.device.has_stuck_worker() ? "a request to " + device + " still waits in the kernel"
           : link != Link::Live                   ? "no path to the target is live"
                                                  : device + " does not answer") +
          (volume.writes_superblock(volume.look_at_standing())
               ? ", and its unmount would write to it at any later time"
               : ", and its unwritten data would be written at any later time"),
      ""};
}

// A flush and an unmount can't be called back from the kernel: when the link is back they write, whatever
// another host has written by then, and to whatever disk is there. The link may be down for a moment, or have
// been down until a moment ago, and then the device has its time from there; and a read that queued behind a
// flush ends a moment later than it. A flush may begin while only other requests are known to be answered:
// `then_flushes`.
asio::awaitable<Result<>> look_before_writing(Parts its, bool then_flushes) {
  VolumeContext& volume = its.volume;
  const SteadyTime begun = volume.clock.steady();
  std::optional<SteadyTime> live_since;
  for (;;) {
    const Standing standing = volume.look_at_standing();
    const Link link = its.paths.look();
    live_since =
        link == Link::Live ? live_since.value_or(volume.clock.steady()) : std::optional<SteadyTime>();
    const bool is_writable = standing.place == Place::Ours && !mounts::is_read_only(*standing.top);
    const bool waits = link == Link::Down && volume.writes_superblock(standing);
    if ((!is_writable && !waits) || link == Link::Gone) co_return Result<>{};
    Result<> known;
    if (link == Link::Live) known = co_await its.nvme.check_before_leaving();
    if (!known && known.error().kind == Errc::Refused) co_return known;
    const bool answers = co_await stop_if_lost(its);
    if (link == Link::Live && known && answers) co_return known;
    if (volume.clock.steady() - live_since.value_or(begun) >= volume.timings.leave || volume.stopped) {
      if (known && then_flushes && its.health.is_io_moving()) co_return known;
      Error stays = known ? stays_mounted(volume, link) : known.error();
      stays.hint = "try again when the target answers; " + hint_of_force(volume.settings);
      co_return fail(std::move(stays));
    }
    co_await volume.sleep(volume.timings.watch_closely);
    if (link != Link::Live && !volume.stopped) co_await its.paths.tend_once();
  }
}

// Meanwhile programs may still use it. An unmount flushes after the kernel has taken the mount out of the
// table, where no probe reaches its server. Ends early, while the flush goes on, if an operator asks it up,
// or down by force, or if the device has been silent for too long.
asio::awaitable<Result<>> flush(Parts its, OwnMount mount) {
  VolumeContext& volume = its.volume;
  const bool is_nvme = volume.settings.nvme.has_value();
  volume.set_state(State::Leaving,
                   "its unwritten data is being " +
                       (is_nvme ? "written to " + volume.status.device : std::string("sent to its server")) +
                       ", then it is unmounted");
  const auto outcome = start_flush(volume, std::move(mount), [&volume] { volume.wake(); });
  const Duration period = std::max(volume.timings.leave, volume.timings.watch);
  SteadyTime answered_at = volume.clock.steady();
  while (!*outcome) {
    co_await volume.sleep(period);
    if (its.health.is_io_moving()) answered_at = volume.clock.steady();
    if (*outcome) break;
    const bool is_asked_up = volume.wanted_up && !volume.status.taken_down;
    const bool is_forced = its.requests.on_down() == OnDown::Force;
    if (is_asked_up || is_forced || volume.stopped)
      co_return fail(Errc::Cancelled, "volume " + volume.settings.name + " was asked " +
                                          (is_forced ? "down by force" : "up") + " meanwhile");
    if (volume.clock.steady() - answered_at > volume.timings.flush_silence + period)
      co_return fail(Errc::Unavailable,
                     (is_nvme ? volume.status.device : "its server") +
                         " does not answer, and unwritten data waits for it",
                     is_nvme ? "try again when the target answers" : hint_of_force(volume.settings));
    if (!is_nvme) {
      const auto found = co_await its.health.look(volume.look_at_standing());
      if (found.verdict == Verdict::Good) answered_at = volume.clock.steady();
      continue;
    }
    co_await its.paths.tend_once();
    if (*outcome) break;
    (void)co_await stop_if_lost(its);
    // A mount that adoption refuses has no record that its probe is compared with.
    Result<> known;
    if (!*outcome && its.paths.look() == Link::Live) known = co_await its.nvme.check_before_leaving();
    if (!known && known.error().kind == Errc::Refused) co_return known;
  }
  co_return std::move(**outcome);
}

// The long part: an unmount has a short deadline.
asio::awaitable<Result<>> flush_before_leaving(Parts its, OnDown on_down) {
  VolumeContext& volume = its.volume;
  const Standing before = volume.look_at_standing();
  const bool is_there = before.own && before.place != Place::Covered;
  // What is left to do may wait for the device.
  if (is_there || volume.status.state == State::Ready)
    volume.set_state(State::Leaving, "it is being unmounted");
  if (!is_there) co_return Result<>{};
  bool may_flush = on_down != OnDown::Force;
  if (volume.settings.nvme) {
    if (volume.status.device.empty()) volume.status.device = before.top->source;
    if (auto known = co_await look_before_writing(its, true); !known) co_return known;
    if (auto current = its.nvme.check_device_is_current(); !current) co_return current;
    // A probe may wait in the kernel behind the data that is being written.
    const bool answers = !volume.seams.device.has_stuck_worker() || its.health.is_io_moving();
    may_flush = its.paths.look() == Link::Live && answers;
  }
  const Standing standing = volume.look_at_standing();
  const bool is_writable = standing.place == Place::Ours && !mounts::is_read_only(*standing.top);
  if (!may_flush || !is_writable) co_return Result<>{};
  auto flushed = co_await flush(its, *standing.own);
  const Standing now = volume.look_at_standing();
  if (!now.own || *now.own != *standing.own) co_return Result<>{};  // another program unmounted it
  if (now.place == Place::Covered) co_return fail(covered(volume.settings, now));
  if (flushed) co_return flushed;
  if (flushed.error().kind == Errc::Failed)
    flushed.error().hint = "some of its unwritten data may be lost; `spark-stage volumes down " +
                           volume.settings.name + "` again unmounts it";
  co_return flushed;
}

// The operator learns that the connection stays, also of a volume that a reload removes.
asio::awaitable<Result<>> leave_connection(VolumeContext& volume) {
  std::string kept;
  if (const auto loose = loose_connection(volume.seams, volume.settings)) {
    nvmetcp::CutOff no_device;
    const auto gone = co_await disconnect(volume.seams, volume.settings, *loose, std::move(no_device));
    if (!gone.outcome) co_return gone.outcome;
    kept = gone.kept;
  } else if (!volume.seams.neighbours.subsystem_shared()) {
    kept = "another of its namespaces is mounted, or the mounts can't be read";
  }
  if (!kept.empty()) kept = "its connection stayed as it went down: " + kept;
  if (!kept.empty()) log::warning("volume " + volume.settings.name + ": " + kept);
  volume.status.warn(Warning::LeftConnected, std::move(kept));
  co_return Result<>{};
}

}  // namespace

// A volume that can't be taken down stays unchanged; the caller gets the reason.
asio::awaitable<void> Volume::take_down() {
  Result<> done;
  const OnDown on_down = requests_.on_down();
  // A mount made since it is down belongs to another program, unless an operator asks again. Its target may
  // have moved since.
  const bool is_asked_again = status().state == State::Down && requests_.is_down_asked();
  if (is_asked_again && settings().nvme) (void)co_await paths_.rivals().find_place();
  const bool is_mounted = is_asked_again && is_own(context_.look_at_mount());
  if (status().state != State::Down || is_mounted) {
    const Parts parts{context_, paths_, health_, fence_, nvme_, requests_};
    done = co_await flush_before_leaving(parts, on_down);
    if (context_.wanted_up) co_return;  // asked up meanwhile
    if (done) done = co_await leave_host(on_down);
  } else if (status().warnings.contains(Warning::LeftConnected) && is_asked_again) {
    done = co_await leave_connection(context_);
  }
  if (!done && requests_.on_down() != on_down && !context_.wanted_up) co_return;  // asked by force meanwhile
  if (!done && context_.stopped) co_return;  // its successor goes on with it
  const bool is_down = done.has_value();
  requests_.answer_down(std::move(done));
  if (!is_down || context_.wanted_up || context_.stopped) co_return;
  const Duration until_record = co_await requests_.record_missed();
  const bool is_asked = context_.wanted_up || context_.stopped || requests_.is_down_asked();
  if (!is_asked) co_await context_.sleep(until_record);
}

// Unmounts, then disconnects; as much as possible. Missing objects are skipped.
asio::awaitable<Result<>> Volume::leave_host(OnDown on_down) {
  while (paths_.is_connecting())
    co_await context_.sleep(context_.timings.namespace_poll);  // it would appear again after the disconnect
  const bool is_nvme = settings().nvme.has_value();
  if (is_nvme) {
    if (const auto found = co_await paths_.rivals().find_place(); !found) co_return found.take_error();
    const bool leaves = on_down == OnDown::Disconnect;
    if (auto alone = check_not_elsewhere(context_.seams, settings()); leaves && !alone) co_return alone;
    const Parts parts{context_, paths_, health_, fence_, nvme_, requests_};
    if (auto known = co_await look_before_writing(parts, false); !known) co_return known;
    if (auto may = co_await nvme_.check_may_unmount(); !may) co_return may;
  }
  Status& status = context_.status;
  const bool had_reservation = status.fence.reservation;
  const auto released = co_await release_mount(context_.seams, settings(), on_down);
  if (!released) {
    Error error = released.error();
    // An NFS server may have gone since it last answered.
    if (!is_nvme && error.kind == Errc::TimedOut) error.hint = hint_of_force(settings());
    co_return fail(std::move(error));
  }
  context_.forget_mount();
  status.warn(Warning::StillReserved, had_reservation ? released->still_reserved : "");
  if (!released->users.empty())
    log::warning("volume " + settings().name + ": detached, although in use by " + released->users);
  co_await fence_.forget_held();  // before: another volume of the subsystem asks about this one in a wait
  if (is_nvme && on_down == OnDown::Disconnect) {
    if (auto left = co_await leave_connection(context_); !left) co_return left;
    if (auto gone = check_has_left(context_.seams, settings()); !gone) co_return gone;
  }
  context_.attempts.was_ready = false;
  status.fence = {};
  outages_.end_unhealed();
  status.device.clear();
  status.paths.clear();
  status.forget_connection();
  status.warn(Warning::LeftBehind, "");
  context_.set_state(State::Down);
  co_return Result<>{};
}

// Called before the volume is brought up. A mount made after it had been taken down is left alone.
asio::awaitable<Result<>> Volume::follow_intent() {
  const std::string name = settings().name, mount = settings().mount.native();
  const std::string up = "`sudo spark-stage volumes up " + name + "`",
                    down = "`sudo spark-stage volumes down " + name + "`";
  const auto& intent = requests_.intent();
  if (!intent) {
    co_return fail(
        Errc::Refused,
        "whether volume " + name + " is to be up or down can't be read: " + intent.error().message(),
        up + " or " + down + " decides it");
  }
  if (intent->up) co_return Result<>{};
  const WallTime since = intent->since;
  const std::string taken_down =
      "volume " + name + " was taken down by " + printable(intent->by) + " at " + rfc3339(since);
  const Place place = context_.look_at_mount();
  if (intent->is_released && (is_own(place) || place == Place::Covered)) {
    co_return fail(Errc::Refused, taken_down + ", and is mounted on " + mount,
                   down + " unmounts it; " + up + " adopts the mount");
  }
  if (!intent->is_released) {
    auto left = co_await finish_down();
    if (intent->up) co_return Result<>{};  // since a moment ago
    if (!left) co_return fail_with(std::move(left.error()), taken_down + ", and that is not done yet");
  }
  context_.wanted_up = false;
  context_.set_state(State::Down);
  context_.status.since = since;
  co_return fail(Errc::Cancelled, taken_down);
}

// Completes a release that a crash interrupted. Not while the link is down: an unmount would wait for it in
// the kernel.
asio::awaitable<Result<>> Volume::finish_down() {
  if (context_.seams.device.has_stuck_worker())
    co_return fail(Errc::Unavailable,
                   "a request to " + settings().mount.native() + " still waits in the kernel");
  const Place place = context_.look_at_mount();
  const bool has_device = place == Place::Ours || place == Place::Broken;
  if (settings().nvme && has_device && paths_.look() == Link::Down) {
    co_await paths_.tend_once();
    co_return fail(Errc::Unavailable, "no path to the target is live: unmounting it would wait for the link");
  }
  const Parts parts{context_, paths_, health_, fence_, nvme_, requests_};
  auto left = co_await flush_before_leaving(parts, OnDown::Disconnect);
  if (left) left = co_await leave_host(OnDown::Disconnect);
  if (left) co_await requests_.note_released();
  co_return left;
}

}  // namespace spark::volumes
