// An operator's intent: recorded before anything is done about it, so that a crash in between leaves a volume
// that the next start takes down, never one that comes up unasked.
#include "daemon/volumes/intent.hpp"

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

json::object to_json(const Intent& intent) {
  if (intent.up) return {{"wanted", "up"}};
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(intent.since.time_since_epoch());
  return {
      {"wanted", "down"}, {"since_ms", since.count()}, {"by", intent.by}, {"released", intent.is_released}};
}

Result<Intent> intent_from_json(const json::object& object) {
  const std::string wanted = get_string(object, "wanted").value_or("");
  if (wanted == "up") return Intent{};
  if (wanted != "down") return fail(Errc::Invalid, "it says neither up nor down");
  return Intent{false, WallTime(std::chrono::milliseconds(get_int(object, "since_ms").value_or(0))),
                get_string(object, "by").value_or(""), get_bool(object, "released").value_or(false)};
}

asio::awaitable<Result<>> Volume::keep_up() {
  const auto self = shared_from_this();
  Intent up;
  if (auto recorded = co_await record(std::move(up)); !recorded) co_return recorded;
  ask_up();
  co_return Result<>{};
}

asio::awaitable<Result<>> Volume::keep_down(std::string by) {
  const auto self = shared_from_this();
  const bool was_down = intent_ && !intent_->up;
  Intent down{false, clock_.wall(), std::move(by)};
  if (auto recorded = co_await record(std::move(down)); !recorded) co_return recorded;
  is_new_down_ = is_new_down_ || !was_down;
  auto result = co_await ask_down();
  if (result) co_await note_released();
  if (!result && intent_ && intent_->up && wanted_up_) {  // in use, perhaps: it stays as it was
    Intent up;
    if (auto saved = co_await save(std::move(up)); !saved) log::survived(saved.error());
  }
  co_return result;
}

// A volume that is down keeps since when and by whom; one that was mounted since has to be released again.
asio::awaitable<Result<>> Volume::record(Intent intent) {
  while (is_recording_) co_await wait_for_answer();
  const bool is_same = intent_ && intent_->up == intent.up;
  const bool is_recorded = intent.up || status_.state == State::Down || (is_same && !intent_->is_released);
  if (is_same && is_recorded) co_return Result<>{};
  if (is_same) intent = *intent_;
  intent.is_released = false;
  co_return co_await save(std::move(intent));
}

// One after the other: what was asked last is what stays.
asio::awaitable<Result<>> Volume::save(Intent intent) {
  while (is_recording_) co_await wait_for_answer();
  is_recording_ = true;
  auto saved = co_await actions_->save_intent(intent);
  is_recording_ = false;
  if (saved) note_intent(intent);
  answered_.cancel();
  if (saved) co_return Result<>{};
  co_return fail_with(std::move(saved.error()), "recording that volume " + settings_.name + " is to be " +
                                                    (intent.up ? "up" : "down") + "; it stays as it is");
}

// Without the record, the next start finds nothing left to take down.
asio::awaitable<void> Volume::note_released() {
  while (is_recording_) co_await wait_for_answer();
  if (!intent_ || intent_->up || intent_->is_released) co_return;
  Intent released = *intent_;
  released.is_released = true;
  if (auto saved = co_await save(std::move(released)); !saved) log::survived(saved.error());
}

void Volume::note_intent(Result<Intent> intent) {
  intent_ = std::move(intent);
  status_.taken_down.reset();
  if (intent_ && !intent_->up) status_.taken_down = *intent_;
}

// Before anything is brought up. What was mounted after it had been taken down is left alone.
asio::awaitable<Result<>> Volume::follow_intent() {
  const std::string up = "`sudo spark-stage volumes up " + settings_.name + "`",
                    down = "`sudo spark-stage volumes down " + settings_.name + "`";
  if (!intent_) {
    co_return fail(Errc::Refused,
                   "whether volume " + settings_.name +
                       " is to be up or down can't be read: " + intent_.error().message(),
                   up + " or " + down + " decides it");
  }
  if (intent_->up) co_return Result<>{};
  const WallTime since = intent_->since;
  const std::string taken_down =
      "volume " + settings_.name + " was taken down by " + printable(intent_->by) + " at " + rfc3339(since);
  const Place place = look_at_mount();
  if (intent_->is_released && (is_own(place) || place == Place::Covered)) {
    co_return fail(Errc::Refused, taken_down + ", and is mounted on " + settings_.mount.native(),
                   down + " unmounts it; " + up + " has it used as it is");
  }
  if (!intent_->is_released) {
    auto left = co_await finish_down();
    if (!left) co_return fail_with(std::move(left.error()), taken_down + ", and that is not done yet");
    if (intent_->up) co_return Result<>{};  // since a moment ago
  }
  wanted_up_ = false;
  set_state(State::Down);
  status_.since = since;
  co_return fail(Errc::Cancelled, taken_down);
}

// What a crash left to do. Not through a link that is down: an unmount would wait in the kernel for it.
asio::awaitable<Result<>> Volume::finish_down() {
  if (actions_->has_stuck_worker())
    co_return fail(Errc::Unavailable,
                   "a question to " + settings_.mount.native() + " still waits in the kernel");
  const Place place = look_at_mount();
  const bool has_device = place == Place::Ours || place == Place::Broken;
  if (settings_.nvme && has_device && look_at_paths() == Link::Down)
    co_return fail(Errc::Unavailable, "no path to the target is live: unmounting it would wait for the link");
  on_down_ = Connection::Removed;
  auto left = co_await leave_host();
  if (left) co_await note_released();
  co_return left;
}

}  // namespace spark::volumes
