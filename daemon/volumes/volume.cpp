#include "daemon/volumes/volume.hpp"

#include <algorithm>
#include <utility>

#include "daemon/launch.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {
Volume::Volume(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
               std::unique_ptr<VolumeActions> actions, const Clock& clock, Pace pace, OnChange on_change)
    : executor_(executor),
      settings_(std::move(settings)),
      target_(std::move(target)),
      actions_(std::move(actions)),
      clock_(clock),
      pace_(pace),
      on_change_(std::move(on_change)),
      backoff_(pace.first_retry, pace.longest_retry),
      sleep_timer_(executor),
      path_timer_(executor),
      answered_(executor, asio::steady_timer::time_point::max()),
      leave_backoff_(pace.first_leave, pace.longest_leave) {
  status_.since = clock_.wall();
  status_.reason = "starting";
  if (target_) {
    std::vector<nvmetcp::Portal> addresses;
    for (const config::Portal& portal : target_->portals) {
      addresses.push_back({portal.address, portal.port});
      portals_.push_back({addresses.back(), Backoff(pace.first_retry, pace.longest_retry)});
    }
    actions_->addresses().restrict_to(addresses);
  }
  status_.history = History::from_json(actions_->saved_history());
  note_intent(actions_->saved_intent());
}

void Volume::start() {
  auto keep_alive = [](std::shared_ptr<Volume> self) -> asio::awaitable<void> { co_await self->run(); };
  launch(executor_, "volume " + settings_.name, keep_alive(shared_from_this()));
  if (portals_.empty()) return;
  auto tend = [](std::shared_ptr<Volume> self) -> asio::awaitable<void> { co_await self->tend_paths(); };
  launch(executor_, "paths of volume " + settings_.name, tend(shared_from_this()));
}

void Volume::stop() {
  stopped_ = true;
  path_timer_.cancel();
  wake();
}

void Volume::ask_up() {
  if (!wanted_up_ && !down_answer_) {
    down_answer_ = Result<>(fail(Errc::Cancelled, "volume " + settings_.name + " was asked up meanwhile"));
    answered_.cancel();
  }
  wanted_up_ = true;
  tried_ = false;
  backoff_.reset();
  wake();
}

void Volume::try_now() {
  if (status_.state == State::Ready || status_.state == State::Stalled || !wanted_up_) return;
  backoff_.reset();
  is_try_due_ = true;
  wake();
}

void Volume::namespace_added() {
  if (is_namespace_missing_ && actions_->find_namespace(settings_.nvme->subsystem, settings_.nvme->nsid))
    try_now();
}

void Volume::look_now(const std::string& controller) {
  if (std::ranges::find(status_.paths, controller, &PathStatus::controller) != status_.paths.end()) wake();
}

asio::awaitable<Result<>> Volume::ask_down(Connection connection) {
  const auto self = shared_from_this();
  wanted_up_ = false;
  on_down_ = connection;
  down_answer_.reset();
  wake();
  while (!down_answer_ && !stopped_) co_await wait_for_answer();
  if (!down_answer_) co_return fail(Errc::Cancelled, "volume " + settings_.name + " left the configuration");
  co_return *down_answer_;
}

asio::awaitable<void> Volume::wait_for_answer() {
  co_await answered_.async_wait(kToken);
}

bool Volume::wants_subsystem(const std::string& subsystem) const {
  const bool is_released = intent_ && intent_->is_released;
  return settings_.nvme && settings_.nvme->subsystem == subsystem && status_.state != State::Down &&
         !is_released && !stopped_;
}

asio::awaitable<void> Volume::run() {
  while (!stopped_) {
    co_await guard_mount_point();
    if (stopped_) break;
    if (!wanted_up_) {
      co_await take_down();
      continue;
    }
    is_taking_ = std::exchange(is_take_asked_, false);
    is_try_due_ = false;
    auto up = co_await bring_up();
    if (is_taking_) answer_take(up);
    if (stopped_ || !wanted_up_) continue;
    if (up && look_at_mount() != Place::Ours) {
      up = fail(Errc::Failed, "after mounting, " + settings_.mount.native() + " does not show this volume",
                "`findmnt " + settings_.mount.native() + "` shows what is there");
    }
    if (up) {
      co_await watch();
      // What is lost at once may be lost again; a reader has only let go of an old state.
      if (!stopped_ && wanted_up_ && !is_outdated_) co_await sleep(backoff_.next());
      continue;
    }
    const bool refused = up.error().kind == Errc::Refused;
    const Duration wait = refused ? pace_.refused_retry : backoff_.next();
    tried_ = true;
    status_.next_attempt = clock_.wall() + wait;
    const Place place = look_at_mount();
    const bool is_lost = place == Place::Dead || place == Place::Broken;
    set_state(refused   ? State::Refused
              : is_lost ? State::Lost
                        : working_state(State::Waiting),
              up.error().message());
    if (!is_take_asked_ && !is_try_due_) co_await sleep(wait);
    status_.next_attempt.reset();
  }
  answered_.cancel();
}

asio::awaitable<Result<>> Volume::bring_up() {
  if (auto intended = co_await follow_intent(); !intended) co_return intended;
  const Standing standing = look_at_place(*actions_, settings_);
  if (standing.place == Place::Covered) co_return fail(covered(settings_, standing));
  if (settings_.nfs) co_return co_await bring_up_nfs();
  co_return co_await bring_up_nvme();
}

// Each time before it is brought up or taken down: a person may have removed the guard meanwhile.
asio::awaitable<void> Volume::guard_mount_point() {
  auto guard = co_await actions_->guard(settings_.mount, is_own(look_at_mount()));
  if (!guard && guard.error().kind == Errc::Refused) co_return;  // the mount says so too
  if (!guard) guard = mounts::Guard{guard_.is_ours, guard.error().message(), {}};
  guard_ = std::move(*guard);
  status_.bare = bare_mount_point(settings_, guard_);
}

// A file system that shut down on a device that works: the kernel keeps it until its last user has let go.
asio::awaitable<Result<>> Volume::clear_broken_mount() {
  const bool lost_fence = !fence_lost_.empty();
  set_state(lost_fence ? State::Refused : State::Lost,
            lost_fence ? fence_lost_ : "taking the broken file system off " + settings_.mount.native());
  if (auto may = co_await check_may_unmount(); !may) co_return may;
  if (look_at_mount() == Place::Dead) co_return Result<>{};  // cut off: it stays until its successor is there
  const auto unmounted = co_await actions_->unmount(settings_.mount, false);
  if (!unmounted) {
    Error error = unmounted.error();
    error.kind = lost_fence                    ? Errc::Refused
                 : error.kind == Errc::Refused ? Errc::Unavailable  // ends by itself when its users end
                                               : error.kind;
    co_return fail_with(std::move(error),
                        lost_fence ? fence_lost_ + "; the dead mount stays" : "the dead mount stays");
  }
  is_broken_ = is_exchanged_ = false;
  fence_lost_.clear();
  co_return Result<>{};
}

// What can't be taken down stays as it was, with the reason given to who asked.
asio::awaitable<void> Volume::take_down() {
  Result<> done;
  if (status_.state != State::Down) done = co_await leave_host();
  if (!done) {
    wanted_up_ = true;
    // At once: the next step looks at it, and keep_down() has yet to record it.
    if (is_new_down_) note_intent(Intent{});
  }
  is_new_down_ = false;
  const bool is_down = done.has_value();
  down_answer_ = std::move(done);
  answered_.cancel();
  if (is_down && !wanted_up_ && !stopped_) co_await sleep(Duration::max());
}

// Unmount, then disconnect; all of it, or as much as can be done. Whatever is gone already is passed over.
asio::awaitable<Result<>> Volume::leave_host() {
  while (connecting_path_)
    co_await sleep(pace_.namespace_poll);  // it would be there again after the disconnect
  if (settings_.nvme) {
    if (const auto found = co_await find_place(); !found) co_return fail(found.error());
    if (auto may = co_await check_may_unmount(); !may) co_return may;
  }
  const auto released = co_await release_mount(*actions_, settings_);
  if (!released) co_return fail(released.error());
  if (!released->still_reserved.empty()) status_.warnings.push_back(released->still_reserved);
  if (settings_.nvme && on_down_ == Connection::Removed && !actions_->subsystem_shared()) {
    auto gone = co_await disconnect_subsystem(*actions_, settings_.nvme->subsystem, nvmetcp::Users::Spared);
    if (!gone.outcome) co_return std::move(gone.outcome);
  }
  was_ready_ = is_broken_ = is_exchanged_ = status_.foreign_writes = false;
  fence_lost_.clear();
  status_.fence = {};
  status_.published.reset();
  status_.damage.clear();
  status_.history.outage_ends(clock_.wall(), std::nullopt);
  remember();
  status_.device.clear();
  status_.paths.clear();
  set_state(State::Down);
  co_return Result<>{};
}

// While a step runs or failed: a volume that was ready before is recovering, once its dead mount gives way.
State Volume::working_state(State first_time) {
  if (first_time != State::Mounting && look_at_mount() == Place::Dead) return State::Lost;
  return was_ready_ ? State::Recovering : first_time;
}

void Volume::set_state(State state, std::string reason) {
  const State before = status_.state;
  const bool changed = state != before || reason != status_.reason;
  if (state != before) status_.since = clock_.wall();
  status_.state = state;
  status_.reason = std::move(reason);
  if (changed && on_change_) on_change_(*this, before);
}

// All volumes look at the same moments: what they look at is read once then (Sight).
Duration Volume::until_next(Duration pace) const {
  const auto now = clock_.steady().time_since_epoch();
  return std::chrono::ceil<Duration>(pace - now % pace);
}

asio::awaitable<void> Volume::sleep(Duration duration) {
  if (duration == Duration::max()) {
    sleep_timer_.expires_at(asio::steady_timer::time_point::max());
  } else {
    sleep_timer_.expires_after(duration);
  }
  co_await sleep_timer_.async_wait(kToken);
}

void Volume::wake() {
  sleep_timer_.cancel();
}

}  // namespace spark::volumes
