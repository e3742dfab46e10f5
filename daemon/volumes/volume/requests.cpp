#include "daemon/volumes/volume/requests.hpp"

#include <utility>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {
namespace {

constexpr Duration kRecordAgain{10'000};

// For a request to a volume that is stopped.
Error gone_meanwhile(const VolumeContext& volume, const std::string& why, Errc kind) {
  return {kind, "volume " + volume.settings.name + " " + why + " meanwhile",
          "`spark-stage status` shows it; ask again if it is still there"};
}

Error mounted_here(const VolumeContext& volume) {
  const Status& status = volume.status;
  return {Errc::Unavailable,
          "volume " + volume.settings.name + " is mounted here, and is " + to_string(status.state) +
              (status.reason.empty() ? "" : ": " + status.reason),
          "`spark-stage wait " + volume.settings.name + "` ends when it is ready"};
}

// A takeover ends with a mount for writing.
Result<> check_taken(const VolumeContext& volume) {
  if (!volume.checked) return fail(mounted_here(volume));
  if (volume.checked->is_writer) return {};
  const std::string& name = volume.settings.name;
  return fail(Errc::Refused, "volume " + name + " is published here, and mounted read-only",
              "`sudo spark-stage volumes up " + name +
                  "` makes it writable; if another host has it, and is gone for good, `sudo spark-stage "
                  "volumes down " +
                  name + "` first, then take it over");
}

// Another host may have taken it over since the last probe.
asio::awaitable<Result<>> check_not_taken(VolumeContext& volume, Fence& fence) {
  const CheckedMountPtr mount = volume.checked;
  const auto lost = co_await fence.who_took_over(mount);
  volume.wake();
  if (!lost)
    co_return fail(Errc::Unavailable,
                   "whether another host has taken volume " + volume.settings.name +
                       " over is not known: " + lost.error().what,
                   "`spark-stage status` shows its state; try again when it is ready");
  if (lost->empty()) co_return Result<>{};
  co_return fail(
      Errc::Unavailable, "volume " + volume.settings.name + " is being lost: " + *lost,
      "`spark-stage status` shows when it is left; take it over then, if that host is gone for good");
}

// `what`: and its consequence. Returns the reason.
std::string warn_unrecorded(VolumeContext& volume, const Error& error, const std::string& what) {
  volume.status.warn(Warning::Unrecorded, what + ": " + error.message());
  return error.message();
}

}  // namespace

Requests::Requests(VolumeContext& volume, Fence& fence, const std::string& why_stopped)
    : volume_(volume), fence_(fence), why_stopped_(why_stopped), answered_(volume.executor) {
  note(volume.seams.store.saved_intent());
}

asio::awaitable<Result<>> Requests::keep_up() {
  const auto self = volume_.keep_alive();
  Intent up;
  if (auto recorded = co_await record(std::move(up)); !recorded) co_return recorded;
  ask_up();
  co_return Result<>{};
}

asio::awaitable<Result<>> Requests::keep_down(std::string by, OnDown on_down) {
  const auto self = volume_.keep_alive();
  if (auto may = check_may_leave(on_down); !may) co_return may;
  if (on_down == OnDown::Force)
    log::warning("volume " + volume_.settings.name + ": " + by + " takes it down by force");
  const bool was_down = intent_ && !intent_->up;
  Intent down{false, volume_.clock.wall(), std::move(by)};
  Intent as_asked = down;
  // Without a record it is carried out all the same: an operator may need it now.
  const auto recorded = co_await record(std::move(down));
  const bool is_recorded = recorded || was_down;
  if (!is_recorded) note(std::move(as_asked));
  is_new_down_ = is_new_down_ || !was_down;
  auto result = co_await go_down(on_down);
  const bool is_down = result && intent_ && !intent_->up;
  if (is_down && !is_recorded) {
    unrecorded_ = warn_unrecorded(
        volume_, recorded.error(),
        "that it stays down is not recorded yet, and a restart of the daemon would bring it up");
    volume_.wake();
  }
  if (result) co_await note_released();
  if (!result && is_recorded && intent_ && intent_->up && volume_.wanted_up) {  // for example in use
    Intent up;
    auto saved = co_await save(std::move(up));
    if (!saved)
      unrecorded_ = warn_unrecorded(
          volume_, saved.error(),
          "that it is to be up is not recorded yet, and a restart of the daemon would take it down");
  }
  co_return result;
}

void Requests::ask_up() {
  want_up();
  volume_.wake();
}

// A request to take it down that is still in progress ends without a result.
void Requests::want_up() {
  if (!volume_.wanted_up && !down_answer_) {
    down_answer_ =
        Result<>(fail(Errc::Cancelled, "volume " + volume_.settings.name + " was asked up meanwhile"));
    answered_.notify();
  }
  volume_.status.warn(Warning::LeftConnected, "");
  volume_.wanted_up = true;
  volume_.attempts.failed = false;
  volume_.backoff.reset();
}

asio::awaitable<Result<>> Requests::ask_down(OnDown on_down) {
  const auto self = volume_.keep_alive();
  if (auto may = check_may_leave(on_down); !may) co_return may;
  co_return co_await go_down(on_down);
}

// An unmount would wait in the kernel for the server. A block device's I/O ends with its connection instead.
Result<> Requests::check_may_leave(OnDown on_down) const {
  const std::string& name = volume_.settings.name;
  if (on_down == OnDown::Force && !volume_.settings.nfs) {
    return fail(Errc::Refused, "volume " + name + " is not taken down by force: it is no NFS volume",
                hint_of_force(volume_.settings));
  }
  if (auto settled = check_not_changing(volume_); !settled) return settled;
  if (on_down == OnDown::Force || !volume_.settings.nfs || volume_.status.state != State::Stalled) return {};
  return fail(Errc::Refused,
              "volume " + name + " is stalled, and unmounting it would wait: " + volume_.status.reason,
              hint_of_force(volume_.settings));
}

asio::awaitable<Result<>> Requests::go_down(OnDown on_down) {
  if (std::exchange(is_take_asked_, false)) answer_take(fail(asked_down(volume_)));
  volume_.wanted_up = false;
  on_down_ = on_down;
  down_answer_.reset();
  volume_.wake();
  while (!down_answer_ && !volume_.stopped) co_await answered_.wait();
  if (!down_answer_) co_return fail(gone_meanwhile(volume_, why_stopped_, Errc::Cancelled));
  co_return *down_answer_;
}

asio::awaitable<Result<std::string>> Requests::take(Take what) {
  const auto self = volume_.keep_alive();
  const Status& status = volume_.status;
  const std::string name = "volume " + volume_.settings.name;
  if (!wants_fence(volume_.settings)) {
    co_return fail(Errc::Refused, name + " can't be taken over: it is not exclusive, or has no fence",
                   "taking over is for `access: exclusive` with another `fence` than none");
  }
  if (auto settled = check_not_changing(volume_); !settled) co_return settled.take_error();
  if (volume_.look_at_mount() == Place::Ours) {
    auto taken = check_taken(volume_);
    if (taken && status.state != State::Ready) taken = fail(mounted_here(volume_));
    if (taken) taken = co_await check_not_taken(volume_, fence_);
    if (!taken) co_return taken.take_error();
    co_return std::string();
  }
  if (what == Take::IfHere || status.state == State::Ready) {  // no probe has seen the new holder yet
    co_return fail(Errc::Unavailable, name + " is not mounted here any more",
                   "`spark-stage status` shows its holder after a moment; then repeat the command");
  }
  Intent up;
  if (auto recorded = co_await record(std::move(up)); !recorded) co_return recorded.take_error();
  want_up();
  is_take_asked_ = true;
  fence_.forget_take();
  take_answer_.reset();
  volume_.wake();
  while (!take_answer_ && !volume_.stopped) co_await answered_.wait();
  if (!take_answer_) co_return fail(gone_meanwhile(volume_, why_stopped_, Errc::Cancelled));
  if (!*take_answer_) co_return fail(take_answer_->error());
  co_return fence_.taken_from();
}

void Requests::try_now() {
  const State state = volume_.status.state;
  if (state == State::Ready || state == State::Stalled || !volume_.wanted_up) return;
  volume_.backoff.reset();
  is_try_due_ = true;
  volume_.wake();
}

void Requests::begin_attempt() {
  is_taking_ = std::exchange(is_take_asked_, false);
  is_try_due_ = false;
}

// Answers every caller, so the next attempt must not take the volume over: its callers have their answer.
void Requests::answer_take(Result<> result) {
  is_taking_ = is_take_asked_ = false;
  if (result) result = check_taken(volume_);
  take_answer_ = std::move(result);
  answered_.notify();
}

void Requests::note_ready() {
  if (std::exchange(is_take_asked_, false)) answer_take(Result<>());
}

asio::awaitable<Duration> Requests::record_missed() {
  while (is_recording_) co_await answered_.wait();
  if (!unrecorded_.empty() && intent_ && volume_.clock.steady() >= next_record_) {
    next_record_ = volume_.clock.steady() + kRecordAgain;
    Intent missed = *intent_;
    (void)co_await save(std::move(missed));
  }
  co_return unrecorded_.empty() ? Duration::max() : kRecordAgain;
}

void Requests::answer_down(Result<> result) {
  if (!result) {
    volume_.wanted_up = true;
    // Immediately: the next step reads it, and keep_down() has not recorded it yet.
    if (is_new_down_) note(Intent{});
  }
  is_new_down_ = false;
  on_down_ = OnDown::Disconnect;  // what is left of an earlier down is not forced
  down_answer_ = std::move(result);
  answered_.notify();
}

void Requests::stop() {
  answered_.notify();
}

// A volume that is down keeps the time and the operator; one that was mounted since has to be released again.
asio::awaitable<Result<>> Requests::record(Intent intent) {
  while (is_recording_) co_await answered_.wait();
  // Its successor has read the intent already.
  if (volume_.stopped) co_return fail(gone_meanwhile(volume_, why_stopped_, Errc::Unavailable));
  const bool is_same = intent_ && intent_->up == intent.up;
  const bool is_recorded =
      intent.up || volume_.status.state == State::Down || (is_same && !intent_->is_released);
  if (is_same && is_recorded && unrecorded_.empty()) co_return Result<>{};
  if (is_same) intent = *intent_;
  intent.is_released = false;
  co_return co_await save(std::move(intent));
}

// Serialized, so that the latest request remains.
asio::awaitable<Result<>> Requests::save(Intent intent) {
  while (is_recording_) co_await answered_.wait();
  is_recording_ = true;
  auto saved = co_await volume_.seams.store.save_intent(intent);
  is_recording_ = false;
  if (saved) {
    note(intent);
    unrecorded_.clear();
    volume_.status.warn(Warning::Unrecorded, "");
  }
  answered_.notify();
  if (saved) co_return Result<>{};
  co_return fail_with(std::move(saved.error()), "recording that volume " + volume_.settings.name +
                                                    " is to be " + (intent.up ? "up" : "down"));
}

asio::awaitable<void> Requests::note_released() {
  while (is_recording_) co_await answered_.wait();
  if (!intent_ || intent_->up || intent_->is_released) co_return;
  Intent released = *intent_;
  released.is_released = true;
  note(released);
  if (!unrecorded_.empty()) co_return;  // record_missed() does it
  if (auto saved = co_await save(std::move(released)); !saved)
    unrecorded_ = warn_unrecorded(
        volume_, saved.error(),
        "that it is down is not recorded yet, and a restart of the daemon would unmount what is "
        "mounted there by then");
}

void Requests::note(Result<Intent> intent) {
  intent_ = std::move(intent);
  volume_.status.taken_down.reset();
  if (intent_ && !intent_->up) volume_.status.taken_down = *intent_;
}

}  // namespace spark::volumes
