#include "daemon/volumes/volume/volume.hpp"

#include <algorithm>
#include <utility>

#include "daemon/launch.hpp"
#include "daemon/volumes/attachment/nfs_attachment.hpp"
#include "daemon/volumes/attachment/nvme_checks.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {
namespace {

// A covered mount still writes, so it can lose its fence like any other.
asio::awaitable<void> watch_below(VolumeContext& volume, Paths& paths, Fence& fence) {
  const CheckedMountPtr mount = volume.checked;
  if (!mount || !mount->is_writer || mount->is_changing_writing || volume.seams.device.has_stuck_worker())
    co_return;
  if (!mount->fence_lost.empty()) {
    (void)co_await fence.stop(mount);  // again, if that failed
    co_return;
  }
  if (volume.settings.nfs || paths.look() != Link::Live) co_return;
  auto lost = co_await fence.who_took_over(mount);
  if (lost && !lost->empty()) co_await fence.lose(mount, std::move(*lost));
}

}  // namespace

Volume::Volume(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
               Seams seams, const Clock& clock, Timings timings, OnChange on_change)
    : context_(std::move(executor), std::move(settings), std::move(target), std::move(seams), clock, timings,
               [this, on_change = std::move(on_change)](State before) {
                 if (on_change) on_change(*this, before);
               }),
      outages_(context_),
      fence_(context_, outages_),
      paths_(context_),
      publication_(context_, fence_),
      health_(context_, paths_, fence_, publication_),
      mount_point_(context_),
      nvme_(context_, paths_, fence_, mount_point_),
      requests_(context_, fence_, why_stopped_) {
  context_.keep_alive = [this] { return shared_from_this(); };
  context_.status.history = History::from_json(context_.seams.store.saved(Record::History));
}

void Volume::start() {
  auto keep_alive = [](std::shared_ptr<Volume> self) -> asio::awaitable<void> { co_await self->run(); };
  launch(context_.executor, "volume " + settings().name, keep_alive(shared_from_this()));
  if (!context_.target) return;
  auto tend = [](std::shared_ptr<Volume> self) -> asio::awaitable<void> { co_await self->paths_.tend(); };
  launch(context_.executor, "paths of volume " + settings().name, tend(shared_from_this()));
}

void Volume::stop(std::string why) {
  context_.stopped = true;
  why_stopped_ = std::move(why);
  paths_.stop();
  context_.wake();
}

asio::awaitable<void> Volume::run() {
  while (!context_.stopped) {
    co_await mount_point_.guard();
    if (context_.stopped) break;
    if (context_.wanted_up) {
      co_await attempt();
      context_.attempts.reads = false;
    } else {
      co_await take_down();
    }
  }
  requests_.stop();
}

asio::awaitable<void> Volume::attempt() {
  requests_.begin_attempt();
  auto up = co_await bring_up();
  if (requests_.is_taking()) requests_.answer_take(up);
  if (context_.is_left()) co_return;
  if (up && context_.look_at_mount() != Place::Ours) {
    const std::string mount = settings().mount.native();
    up = fail(Errc::Failed, "after mounting, " + mount + " does not show this volume",
              "`findmnt " + mount + "` shows the mount");
  }
  if (!up) {
    co_await wait_after(up.error());
    co_return;
  }
  co_await watch();
  // A volume lost immediately may be lost again, hence the back-off. A reader has only left an outdated
  // state, and a mount that lost its check is checked before it is watched again.
  const bool is_unchecked = context_.look_at_mount() == Place::Ours && !context_.checked;
  const bool is_due = context_.is_left() || context_.attempts.replaces_outdated || is_unchecked;
  if (!is_due) co_await context_.sleep(context_.backoff.next());
}

asio::awaitable<void> Volume::wait_after(Error error) {
  const bool is_refused = error.kind == Errc::Refused;
  const bool writes_unseen = (context_.checked && context_.look_at_mount() == Place::Covered) ||
                             (wants_reservation(settings()) && writer_elsewhere(context_.seams, settings()));
  const Timings& timings = context_.timings;
  const Duration wait = !is_refused     ? context_.backoff.next()
                        : writes_unseen ? std::min(timings.probe, timings.refused_retry)
                                        : timings.refused_retry;
  context_.attempts.failed = true;
  context_.attempts.reads = false;
  context_.status.next_attempt = context_.clock.wall() + wait;
  const Place place = context_.look_at_mount();
  const bool is_lost = place == Place::Dead || place == Place::Broken;
  context_.set_state(is_refused ? State::Refused
                     : is_lost  ? State::Lost
                                : context_.working_state(State::Waiting),
                     error.message());
  if (!requests_.is_attempt_due()) co_await context_.sleep(wait);
  context_.status.next_attempt.reset();
}

asio::awaitable<Result<>> Volume::bring_up() {
  if (auto intended = co_await follow_intent(); !intended) co_return intended;
  Standing standing = look_at_place(context_.seams, settings());
  if (standing.place == Place::Covered && settings().nvme) {  // perhaps by a connection that is not known yet
    (void)co_await paths_.rivals().find_place();
    standing = look_at_place(context_.seams, settings());
  }
  if (standing.place == Place::Covered) {
    if (settings().nvme) co_await nvme_.adopt_hidden_writer();
    co_await watch_below(context_, paths_, fence_);
    co_return fail(covered(settings(), standing));
  }
  if (settings().nfs) co_return co_await bring_up_nfs(context_, mount_point_);
  co_return co_await nvme_.bring_up(requests_.is_taking());
}

// Runs from the mount until the mount is gone, or the volume should be down.
asio::awaitable<void> Volume::watch() {
  health_.begin();
  const Status& status = context_.status;
  while (!context_.is_left()) {
    Standing standing = context_.look_at_standing();
    const Place place = standing.place;
    // It was adopted while its link was down, or another program mounted it: it is not checked yet.
    const bool is_unknown = !context_.checked && place == Place::Ours;
    if (is_unknown && (settings().nfs || paths_.look() == Link::Live)) {
      if (status.state == State::Ready)
        context_.set_state(State::Recovering, "another program changed its mount, which is checked");
      co_return;
    }
    auto found = co_await health_.look(std::move(standing));
    if (context_.is_left()) co_return;
    if (!co_await act_on(std::move(found), place)) co_return;
    if (status.state == State::Ready && context_.clock.steady() - ready_since_ >= context_.timings.settled)
      context_.backoff.reset();
    if (status.state == State::Ready) co_await health_.ask_about_drives();
    (void)co_await requests_.record_missed();
    const Duration period =
        status.state == State::Ready ? context_.timings.watch : context_.timings.watch_closely;
    co_await context_.sleep(context_.until_next(period));
  }
}

// False: the mount must be removed, and the volume brought up again.
asio::awaitable<bool> Volume::act_on(Finding found, Place place) {
  if (found.verdict == Verdict::Unsure) co_return true;
  context_.attempts.reads = false;
  if (found.verdict == Verdict::Fenced) {
    if (context_.checked) co_await fence_.lose(context_.checked, std::move(found.reason));
    co_return false;
  }
  if (found.verdict == Verdict::Exchanged) {
    if (context_.checked) co_await nvme_.leave_other_filesystem(context_.checked, std::move(found.reason));
    co_return false;
  }
  if (found.verdict == Verdict::Lost || found.verdict == Verdict::Silent) {
    const bool is_lost = found.verdict == Verdict::Lost;
    outages_.begin(found.reason);
    context_.set_state(!is_lost        ? State::Stalled
                       : is_own(place) ? State::Lost
                                       : State::Recovering,
                       std::move(found.reason));
    co_return !is_lost;
  }
  const bool is_outdated = context_.checked && context_.checked->is_outdated;
  if (is_outdated && co_await publication_.leave_outdated()) {
    context_.attempts.replaces_outdated = true;
    context_.set_state(State::Recovering, "it was written meanwhile: remounting");
    co_return false;
  }
  if (status().state != State::Ready) {
    outages_.end();
    ready_since_ = context_.clock.steady();
  }
  context_.set_state(State::Ready, publication_.ready_reason());
  requests_.note_ready();
  co_return true;
}

void Volume::namespace_added() {
  if (!nvme_.is_namespace_missing()) return;
  if (own_namespace(context_.seams, settings())) requests_.try_now();
}

void Volume::look_now(const std::string& controller) {
  const auto& paths = status().paths;
  if (std::ranges::find(paths, controller, &PathStatus::controller) != paths.end()) context_.wake();
}

bool Volume::is_settling() const {
  const State state = status().state;
  const bool is_new = state == State::Waiting || state == State::Connecting || state == State::Mounting;
  const bool is_giving_way = context_.attempts.replaces_outdated && state == State::Recovering;
  return context_.wanted_up && !context_.attempts.failed && (is_new || is_giving_way);
}

bool Volume::wants_subsystem(const std::string& subsystem) const {
  const auto& intent = requests_.intent();
  const bool is_released = intent && intent->is_released;
  return settings().nvme && settings().nvme->subsystem == subsystem && status().state != State::Down &&
         !is_released && !context_.stopped;
}

// A dead mount that is not held already returns errors only, and a foreign mount is not unmounted.
asio::awaitable<Result<std::string>> Volume::users() {
  const Place place = context_.look_at_mount();
  if (!is_own(place) || may_detach(settings(), place)) co_return std::string();
  co_return co_await context_.seams.mounts.users(settings().mount);
}

// Settings that a connection refuses are not in force, and appear in the next plan again.
asio::awaitable<Result<>> Volume::set_live(config::Volume settings, std::optional<config::Target> target) {
  const auto self = shared_from_this();
  std::swap(context_.settings, settings);
  std::swap(context_.target, target);
  Result<> set;
  if (context_.settings.nvme) set = co_await paths_.set_timers();
  if (!set) {
    std::swap(context_.settings, settings);
    std::swap(context_.target, target);
  }
  const CheckedMountPtr mount = context_.checked;
  const bool is_expected = set && mount && context_.settings.nvme &&
                           expected_uuid(context_.seams, context_.settings) == mount->uuid;
  if (is_expected) context_.status.warn(Warning::FilesystemId, "");
  if (is_expected) co_await follow_rename(context_);
  co_return set;
}

}  // namespace spark::volumes
