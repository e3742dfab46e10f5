// An operator's intent: recorded before anything is done about it, so that a crash in between leaves a volume
// that waits for the operator, never one that comes up unasked.
#include "daemon/volumes/intent.hpp"

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

json::object to_json(const Intent& intent) {
  if (intent.up) return {{"wanted", "up"}};
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(intent.since.time_since_epoch());
  return {{"wanted", "down"}, {"since_ms", since.count()}, {"by", intent.by}};
}

Result<Intent> intent_from_json(const json::object& object) {
  const std::string wanted = get_string(object, "wanted").value_or("");
  if (wanted == "up") return Intent{};
  if (wanted != "down") return fail(Errc::Invalid, "it says neither up nor down");
  return Intent{false, WallTime(std::chrono::milliseconds(get_int(object, "since_ms").value_or(0))),
                get_string(object, "by").value_or("")};
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
  Intent down{false, clock_.wall(), std::move(by)};
  if (auto recorded = co_await record(std::move(down)); !recorded) co_return recorded;
  auto result = co_await ask_down();
  if (!result && wanted_up_) {  // in use, perhaps: it stays as it was
    Intent up;
    if (auto saved = co_await save(std::move(up)); !saved) log::survived(saved.error());
  }
  co_return result;
}

// A volume that is down keeps since when and by whom.
asio::awaitable<Result<>> Volume::record(Intent intent) {
  while (is_recording_) co_await wait_for_answer();
  if (intent_ && intent_->up == intent.up) co_return Result<>{};
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

void Volume::note_intent(Result<Intent> intent) {
  intent_ = std::move(intent);
  status_.taken_down.reset();
  if (intent_ && !intent_->up) status_.taken_down = *intent_;
}

// Before anything is brought up. A mount that is there is left alone: only `volumes down` unmounts.
Result<> Volume::check_intent() {
  const std::string up = "`sudo spark-stage volumes up " + settings_.name + "`",
                    down = "`sudo spark-stage volumes down " + settings_.name + "`";
  if (!intent_) {
    return fail(Errc::Refused,
                "whether volume " + settings_.name +
                    " is to be up or down can't be read: " + intent_.error().message(),
                up + " or " + down + " decides it");
  }
  if (intent_->up) return {};
  const Place place = look_at_mount();
  const std::string taken_down = "volume " + settings_.name + " was taken down by " + printable(intent_->by) +
                                 " at " + rfc3339(intent_->since);
  if (is_own(place) || place == Place::Covered) {
    return fail(Errc::Refused, taken_down + ", and is mounted on " + settings_.mount.native(),
                down + " unmounts it; " + up + " has it used as it is");
  }
  wanted_up_ = false;
  set_state(State::Down);
  status_.since = intent_->since;
  return fail(Errc::Cancelled, taken_down);
}

}  // namespace spark::volumes
