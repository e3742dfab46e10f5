// A mounted volume's health: its mount, its link, and whether I/O comes back from its device.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {
namespace {

// In a row, before a ready volume is called stalled.
constexpr unsigned kDownLooks = 2, kSilentProbes = 2;

}  // namespace

// From mounted until the mount is gone, or a person wants it down.
asio::awaitable<void> Volume::watch() {
  down_looks_ = 0;
  silent_since_.reset();
  while (!stopped_ && wanted_up_) {
    const Place place = look_at_mount();
    // It was adopted while its link was down: who wrote or holds it now decides what a probe's answer means.
    if (settings_.nvme && !is_known_ && place == Place::Ours && look_at_paths() == Link::Live) co_return;
    Finding found;  // unknown is not empty: nothing changes
    if (place == Place::Ours && settings_.nvme) {
      found = co_await check_nvme();
    } else if (place == Place::Ours) {
      found = co_await probe();
    } else if (place != Place::Unknown) {
      found = {Verdict::Lost, why_lost(place)};
    }
    if (found.verdict == Verdict::Lost && (place == Place::Broken || is_broken_)) {
      if (auto taken = co_await who_took_over(); !taken.empty()) found = {Verdict::Fenced, std::move(taken)};
    }
    if (stopped_ || !wanted_up_) co_return;
    if (found.verdict == Verdict::Fenced) {
      co_await lose_fence(found.reason);
      co_return;
    }
    if (found.verdict == Verdict::Exchanged) {
      co_await leave_other_filesystem(found.reason);
      co_return;
    }
    if (found.verdict == Verdict::Lost) {
      outage_starts(found.reason);
      set_state(is_own(place) ? State::Lost : State::Recovering, found.reason);
      co_return;
    }
    if (found.verdict == Verdict::Silent) {
      outage_starts(found.reason);
      set_state(State::Stalled, found.reason);
    }
    if (found.verdict == Verdict::Good && !is_link_trusted()) {
      found = {};
      if (status_.state == State::Stalled)
        set_state(State::Stalled, "the link is back: reads are looked at for a second before it is believed");
    }
    if (found.verdict == Verdict::Good && is_outdated_ && co_await leave_outdated_mount()) {
      set_state(State::Recovering, "another host wrote it: mounting it anew");
      co_return;
    }
    if (found.verdict == Verdict::Good && status_.state != State::Ready) {
      outage_ends();
      ready_since_ = clock_.steady();
    }
    if (found.verdict == Verdict::Good) set_state(State::Ready, ready_reason());
    if (status_.state == State::Ready && clock_.steady() - ready_since_ >= pace_.settled) backoff_.reset();
    if (status_.state == State::Ready) co_await ask_about_drives();
    co_await sleep(until_next(status_.state == State::Ready ? pace_.watch : pace_.watch_closely));
  }
}

std::string Volume::why_lost(Place place) const {
  const std::string mount = settings_.mount.native();
  if (place == Place::Empty) return "somebody unmounted " + mount;
  if (place == Place::Foreign || place == Place::Covered)
    return "somebody mounted something else on " + mount;
  if (place == Place::Broken)
    return "the file system on " + mount + " gives nothing but errors, or went read-only after one";
  return "the device of " + mount + " is gone: the mount on it is dead";
}

// While the link is down nothing touches the device: the read would hang.
asio::awaitable<Volume::Finding> Volume::check_nvme() {
  const Link link = look_at_paths();
  Finding found;
  if (link == Link::Gone) {
    found = {Verdict::Lost, why_lost(Place::Dead)};
    co_return found;
  }
  if (link == Link::Down) {
    if (status_.state == State::Ready && ++down_looks_ < kDownLooks) co_return found;
    link_trusted_from_ = SteadyTime::max();
    found = {Verdict::Silent, "no path to the target is live: I/O waits for the link"};
    co_return found;
  }
  down_looks_ = 0;
  look_for_insecure_paths();
  found = co_await probe();
  if (found.verdict == Verdict::Good) silent_since_.reset();
  if (found.verdict == Verdict::Silent && may_fail_over()) found = {};
  co_return found;
}

// A link that was down may be back with another namespace at its end. Linux 6.1 lets reads through before it
// has compared the identities, and takes the device away then: the first good read proves nothing yet.
bool Volume::is_link_trusted() {
  const SteadyTime now = clock_.steady();
  link_trusted_from_ = std::min(link_trusted_from_, now + pace_.link_doubt);
  return now >= link_trusted_from_;
}

// What waits at a path that has died goes over another one as soon as the kernel has noticed: no outage yet.
bool Volume::may_fail_over() {
  if (portals_.size() < 2 || status_.state != State::Ready) return false;
  const SteadyTime now = clock_.steady();
  if (!silent_since_) silent_since_ = now;
  return now - *silent_since_ < 2 * target_->keep_alive + pace_.fail_over;
}

// Connected by another program since the mount, without the keys, or from an address that is not the
// target's: to take the volume down would hurt its users, and hide the cause.
void Volume::look_for_insecure_paths() {
  auto safe = check_paths_secured();
  if (safe && !known_strangers_.empty()) safe = check_no_rival();  // the target has been asked about them
  std::string warning = safe ? "" : "data may go over it: " + safe.error().message();
  if (!warning.empty() && warning != status_.insecure)
    log::warning("volume " + settings_.name + ": " + warning);
  status_.insecure = std::move(warning);
}

// The kernel calls a link live until its keep-alive has failed: only I/O that comes back proves it.
asio::awaitable<Volume::Finding> Volume::probe() {
  Finding found;
  if (status_.state == State::Ready && clock_.steady() < next_probe_) co_return found;
  const bool is_moving = is_io_moving();
  if (actions_->has_stuck_worker()) {
    if (status_.state != State::Ready || !is_moving)
      found = {Verdict::Silent, "a question to " + status_.device + " still waits in the kernel"};
    co_return found;
  }
  next_probe_ = clock_.steady() + (is_reader() ? pace_.probe_reader : pace_.probe);
  ProbeRequest request{settings_.mount, settings_.nvme ? status_.device : "", std::nullopt};
  if (wants_reservation(settings_))
    request.keep_reservation = {settings_.nvme->subsystem, settings_.nvme->nsid};
  const auto answer = co_await actions_->probe(std::move(request));
  if (!answer) {
    next_probe_ = clock_.steady();
    found = silence(answer.error());
    co_return found;
  }
  silent_probes_ = 0;
  status_.probes.add(answer->us);
  if (answer->shut_down) {
    is_broken_ = true;
    found = {Verdict::Lost, why_lost(Place::Broken)};
    co_return found;
  }
  if (settings_.nvme && !status_.filesystem_uuid.empty() && answer->uuid != status_.filesystem_uuid) {
    // What is not flushed yet would be written into the other file system.
    found = {is_reader() ? Verdict::Lost : Verdict::Exchanged,
             status_.device +
                 " holds another file system than the one that is mounted: " + printable(answer->uuid)};
    is_known_ = false;  // looked at anew, and refused
    co_return found;
  }
  // Who only reads needs no fence: what others write is seen as every reader sees it.
  if (is_published() && answer->holding)
    status_.fence.reservation = answer->holding->hold == nvmetcp::Hold::Ours;
  if (is_fenced() && !is_published()) {
    if (auto lost = why_fence_is_lost(*answer); !lost.empty()) {
      found = {Verdict::Fenced, std::move(lost)};
      co_return found;
    }
  }
  look_for_writers(*answer);
  const bool shut_down = settings_.nvme && co_await is_shut_down();
  is_broken_ = is_broken_ || shut_down;
  found = {shut_down ? Verdict::Lost : Verdict::Good, shut_down ? why_lost(Place::Broken) : ""};
  co_return found;
}

// The mounted file system, apart from its device: an answer may have to wait for other programs' changes. One
// that is shut down answers at once, so that no answer is no evidence.
asio::awaitable<bool> Volume::is_shut_down() {
  if (status_.state == State::Ready && clock_.steady() < next_mounted_state_) co_return false;
  const auto state = co_await actions_->mounted_state(settings_.mount);
  next_mounted_state_ = clock_.steady() + pace_.mounted_state;
  if (!state || is_changing_writing_) co_return false;
  status_.published = state->published;
  look_for_damage(*state);
  co_return state->is_shut_down;
}

void Volume::look_for_damage(const mounts::MountedState& mounted) {
  std::string warning = mounted.damage.empty() ? "" : damaged(mounted.damage);
  if (!warning.empty() && warning != status_.damage)
    log::warning("volume " + settings_.name + ": " + warning);
  status_.damage = std::move(warning);
}

// For people: nothing is decided by it, and a target that does not tell is not asked again soon.
asio::awaitable<void> Volume::ask_about_drives() {
  if (!settings_.nvme || clock_.steady() < next_smart_) co_return;
  const auto live = std::ranges::find(status_.paths, "live", &PathStatus::state);
  if (live == status_.paths.end()) co_return;
  const auto smart = co_await actions_->smart(live->controller);
  status_.drives.reset();
  if (smart) status_.drives = DriveStatus{*smart, clock_.wall()};
  next_smart_ = clock_.steady() + (smart ? pace_.smart : pace_.smart_refused);
}

// A question to a device waits behind the data of all who write to it. As long as some of that comes back,
// the device answers.
bool Volume::is_io_moving() {
  if (!settings_.nvme) return false;
  const auto completed = actions_->completed_io(status_.device);
  if (completed_io_ && completed && completed != completed_io_) io_ended_at_ = clock_.steady();
  completed_io_ = completed;
  return io_ended_at_ != SteadyTime{} && clock_.steady() - io_ended_at_ < pace_.io_silence;
}

// A host under load may be too slow for one probe; a worker that can't even be killed waits for the device.
Volume::Finding Volume::silence(const Error& error) {
  const bool is_proven =
      (actions_->has_stuck_worker() || ++silent_probes_ >= kSilentProbes) && !is_io_moving();
  if (status_.state == State::Ready && !is_proven) return {};
  if (error.kind != Errc::TimedOut) return {Verdict::Silent, error.message()};
  return {Verdict::Silent, status_.device + " does not answer, although its link is up: I/O waits"};
}

void Volume::outage_starts(const std::string& reason) {
  if (!was_ready_ || status_.history.is_out()) return;
  status_.history.outage_begins(clock_.wall(), reason);
  remember();
}

void Volume::outage_ends() {
  if (status_.history.is_out()) {
    status_.history.outage_ends(clock_.wall(), healed_by_us_ ? Healer::Us : Healer::Kernel);
    remember();
  }
  was_ready_ = true;
  tried_ = healed_by_us_ = false;
  if (!left_behind_.empty()) {
    status_.warnings.push_back("files of the mount that was lost are still open, and give errors: " +
                               left_behind_ + "; those programs have to open them again");
    left_behind_.clear();
  }
}

// Saved in the background, one after the other, so that the latest is what stays.
void Volume::remember() {
  unsaved_ = true;
  if (saving_) return;
  auto save = [](std::shared_ptr<Volume> self) -> asio::awaitable<void> { co_await self->save_history(); };
  launch(executor_, "history of volume " + settings_.name, save(shared_from_this()));
}

asio::awaitable<void> Volume::save_history() {
  saving_ = true;
  while (unsaved_) {
    unsaved_ = false;
    auto history = status_.history.to_json();
    co_await actions_->save_history(std::move(history));
  }
  saving_ = false;
}

}  // namespace spark::volumes
