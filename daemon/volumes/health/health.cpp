#include "daemon/volumes/health/health.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {
namespace {

// Consecutive failures before a ready volume counts as stalled.
constexpr unsigned kDownLooks = 2, kSilentProbes = 2;

}  // namespace

void Health::begin() {
  down_looks_ = 0;
  silent_since_.reset();
  link_trusted_from_ = {};
}

asio::awaitable<Finding> Health::look(Standing standing) {
  const Place place = standing.place;
  Finding found;  // unknown: nothing changes
  if (place == Place::Ours && volume_.settings.nvme) {
    found = co_await look_at_link();
  } else if (place == Place::Ours) {
    found = co_await probe();
  } else if (place != Place::Unknown) {
    found = {Verdict::Lost,
             place == Place::Covered ? covered(volume_.settings, standing).what : why_lost(place)};
  }
  const CheckedMountPtr mount = volume_.checked;
  const bool is_broken = place == Place::Broken || (mount && mount->is_broken);
  if (found.verdict == Verdict::Lost && is_broken && mount && mount->is_writer &&
      paths_.look() == Link::Live) {
    // The answer may take long.
    if (volume_.status.state == State::Ready) volume_.set_state(State::Lost, found.reason);
    auto taken = co_await fence_.who_took_over(mount);
    if (taken && !taken->empty()) found = {Verdict::Fenced, std::move(*taken)};
  }
  if (found.verdict != Verdict::Good || is_link_trusted()) co_return found;
  if (volume_.status.state == State::Stalled) {
    volume_.set_state(State::Stalled, "the link is back: reads are verified for 1 s");
  }
  co_return Finding{};
}

std::string Health::why_lost(Place place) const {
  const std::string mount = volume_.settings.mount.native();
  if (place == Place::Empty) return "another program unmounted " + mount;
  if (place == Place::Foreign) return "another program mounted another file system on " + mount;
  if (place == Place::Former)
    return "the target shows another disk at its new address, and " + mount + " waits for the old one";
  if (place == Place::Broken)
    return "the file system on " + mount + " returns only errors, or went read-only after an error";
  return "the device of " + mount + " is gone: the mount on it is dead";
}

asio::awaitable<Finding> Health::look_at_link() {
  const Link link = paths_.look();
  if (link == Link::Gone) co_return Finding{Verdict::Lost, why_lost(Place::Dead)};
  if (link == Link::Down) {
    if (volume_.status.state == State::Ready && ++down_looks_ < kDownLooks) co_return Finding{};
    link_trusted_from_ = SteadyTime::max();
    co_return Finding{Verdict::Silent, "no path to the target is live: I/O waits for the link"};
  }
  down_looks_ = 0;
  paths_.look_for_insecure();
  auto found = co_await probe();
  if (found.verdict == Verdict::Good) silent_since_.reset();
  if (found.verdict == Verdict::Silent && may_fail_over()) co_return Finding{};
  co_return found;
}

// A link that was down may return with another namespace. Linux 6.1 allows reads before it has compared the
// identities, and then removes the device, so the first good read proves nothing yet.
bool Health::is_link_trusted() {
  const SteadyTime now = volume_.clock.steady();
  link_trusted_from_ = std::min(link_trusted_from_, now + volume_.timings.link_doubt);
  return now >= link_trusted_from_;
}

// I/O waiting on a dead path moves to another path as soon as the kernel has detected the failure, so this is
// not an outage yet.
bool Health::may_fail_over() {
  if (!paths_.are_several() || volume_.status.state != State::Ready) return false;
  const SteadyTime now = volume_.clock.steady();
  if (!silent_since_) silent_since_ = now;
  return now - *silent_since_ < 2 * volume_.target->options.keep_alive + volume_.timings.fail_over;
}

// The kernel reports a link as live until its keep-alive has failed: only completed I/O proves it.
asio::awaitable<Finding> Health::probe() {
  const SteadyTime now = volume_.clock.steady();
  if (volume_.status.state == State::Ready && now < next_probe_) co_return Finding{};
  const bool is_moving = is_io_moving();
  if (volume_.seams.device.has_stuck_worker()) {
    if (is_moving) co_return Finding{};
    co_return Finding{Verdict::Silent,
                      "a request to " + volume_.status.device + " still waits in the kernel"};
  }
  next_probe_ = now + (is_reader(volume_) ? volume_.timings.probe_reader : volume_.timings.probe);
  const config::Volume& settings = volume_.settings;
  ProbeRequest request{settings.mount, settings.nvme ? volume_.status.device : "", std::nullopt};
  if (wants_reservation(settings)) request.keep_reservation = {settings.nvme->subsystem, settings.nvme->nsid};
  const CheckedMountPtr mount = volume_.checked;
  const unsigned changes = mount ? mount->changes : 0;
  auto answer = co_await volume_.seams.device.probe(std::move(request));
  if (answer && mount && (mount->is_changing_writing || mount->changes != changes)) {
    mounts::Superblock& changed = answer->superblock;  // by this host's own remount
    changed.stamp = changed.mounts = 0;
    changed.being_written = false;
    changed.mmp_node.clear();
  }
  if (!answer) {
    next_probe_ = volume_.clock.steady();
    co_return silence(answer.error());
  }
  silent_probes_ = 0;
  volume_.status.probes.add(answer->superblock.read_us);
  co_return co_await judge(*answer);
}

asio::awaitable<Finding> Health::judge(ProbeAnswer answer) {
  const CheckedMountPtr mount = volume_.checked;
  if (!mount) co_return Finding{};  // another program unmounted it during the probe
  const bool is_nvme = volume_.settings.nvme.has_value();
  Status& status = volume_.status;
  if (answer.shut_down) {
    mount->is_broken = true;
    co_return Finding{Verdict::Lost, why_lost(Place::Broken)};
  }
  const std::string& uuid = answer.superblock.uuid;
  const bool is_other = is_nvme && uuid != mount->uuid;
  bool is_renamed = false;
  if (is_other) is_renamed = co_await has_new_uuid(mount, uuid);
  if (volume_.checked != mount) co_return Finding{};
  if (is_other && !is_renamed) {
    // Unflushed data would be written into the other file system.
    if (!mount->is_writer) volume_.forget_mount();  // checked again, and refused
    co_return Finding{mount->is_writer ? Verdict::Exchanged : Verdict::Lost,
                      holds_another(status.device, uuid)};
  }
  if (wants_fence(volume_.settings)) {
    auto lost = co_await fence_.why_lost(mount, answer);
    if (volume_.checked != mount) co_return Finding{};
    if (!lost.empty()) co_return Finding{Verdict::Fenced, std::move(lost)};
  }
  if (is_nvme) look_for_cut(answer.superblock);
  publication_.look_for_writers(*mount, answer.superblock);
  bool has_shut_down = false;
  if (is_nvme) has_shut_down = co_await is_shut_down();
  if (!has_shut_down) co_return Finding{Verdict::Good, ""};
  mount->is_broken = true;
  co_return Finding{Verdict::Lost, why_lost(Place::Broken)};
}

// `tune2fs -U` gave the mounted file system another UUID; the next mount is refused until that is configured.
asio::awaitable<bool> Health::has_new_uuid(CheckedMountPtr mount, std::string uuid) {
  const std::string mounted = co_await mounted_filesystem(volume_.seams, mount->mount);
  if (uuid.empty() || mounted != uuid) co_return false;
  volume_.status.warn(Warning::FilesystemId, renamed(volume_.seams, volume_.settings, uuid));
  mount->uuid = volume_.status.filesystem_uuid = uuid;
  mount->is_held_recorded = false;  // with the new one
  json::object record{
      {"mount", mount->mount.text()}, {"from", expected_uuid(volume_.seams, volume_.settings)}, {"to", uuid}};
  const auto saved = co_await volume_.seams.store.save(Record::Renamed, std::move(record));
  if (!saved) log::survived(saved.error());  // the next daemon refuses the mount, and names both
  co_return true;
}

// Checks the mounted file system, independently of its device. The call may have to wait for other programs'
// changes. A file system that is shut down answers immediately, so a missing answer is no evidence of a
// shutdown.
asio::awaitable<bool> Health::is_shut_down() {
  if (volume_.status.state == State::Ready && volume_.clock.steady() < next_mounted_state_) co_return false;
  const OwnMount mount = volume_.checked->mount;
  const auto state = co_await volume_.seams.device.mounted_state(mount.target(), mount.numbers());
  next_mounted_state_ = volume_.clock.steady() + volume_.timings.mounted_state;
  if (!state || !volume_.checked || volume_.checked->is_changing_writing) co_return false;
  volume_.checked->published = state->published;
  look_for_damage(*volume_.checked, *state);
  co_return state->is_shut_down;
}

void Health::look_for_damage(CheckedMount& mount, const mounts::MountedState& mounted) {
  std::string warning = mounted.damage.empty() ? "" : damaged(volume_, mounted.damage);
  if (!warning.empty() && warning != mount.damage)
    log::warning("volume " + volume_.settings.name + ": " + warning);
  mount.damage = std::move(warning);
}

// The kernel says so only to a program that reads or writes there.
void Health::look_for_cut(const mounts::Superblock& seen) {
  const bool is_cut = seen.bytes > 0 && seen.bytes < seen.filesystem_bytes;
  const std::string warning =
      volume_.status.device + " has become smaller than its file system, from " +
      std::to_string(seen.filesystem_bytes) + " to " + std::to_string(seen.bytes) +
      " bytes: what lies beyond can be neither read nor written, until the export on the "
      "target is as large as before";
  if (is_cut && !volume_.status.warnings.contains(Warning::CutShort))
    log::warning("volume " + volume_.settings.name + ": " + warning);
  volume_.status.warn(Warning::CutShort, is_cut ? warning : "");
}

asio::awaitable<void> Health::ask_about_drives() {
  if (!volume_.settings.nvme || volume_.clock.steady() < next_smart_) co_return;
  const auto live = std::ranges::find(volume_.status.paths, "live", &PathStatus::state);
  if (live == volume_.status.paths.end()) co_return;
  const auto smart = co_await volume_.seams.fabric.smart(live->controller);
  volume_.status.drives.reset();
  if (smart) volume_.status.drives = DriveStatus{*smart, volume_.clock.wall()};
  next_smart_ = volume_.clock.steady() + (smart ? volume_.timings.smart : volume_.timings.smart_refused);
}

bool Health::is_io_moving() {
  const State state = volume_.status.state;
  if (!volume_.settings.nvme || (state != State::Ready && state != State::Leaving)) return false;
  const SteadyTime now = volume_.clock.steady();
  std::vector<std::string> controllers;
  for (const PathStatus& path : volume_.status.paths) controllers.push_back(path.controller);
  const auto completed = volume_.seams.device.completed_io(volume_.status.device, controllers);
  if (completed_io_ && completed && completed != completed_io_) io_ended_at_ = now;
  completed_io_ = completed;
  return io_ended_at_ != SteadyTime{} && now - io_ended_at_ < volume_.timings.io_silence;
}

// On a loaded host a single probe may be too slow; but a worker that can't be killed is waiting for the
// device.
Finding Health::silence(const Error& error) {
  const bool is_proven =
      (volume_.seams.device.has_stuck_worker() || ++silent_probes_ >= kSilentProbes) && !is_io_moving();
  if (volume_.status.state == State::Ready && !is_proven) return {};
  if (error.kind != Errc::TimedOut) return {Verdict::Silent, error.message()};
  return {Verdict::Silent, volume_.status.device + " does not answer, although its link is up: I/O waits"};
}

}  // namespace spark::volumes
