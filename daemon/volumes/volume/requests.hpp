// An operator's requests for a volume: up, down, takeover. Recorded before they are carried out: after a
// crash in between, the next start may take a volume down, but never brings one up without a request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "daemon/event.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

class Requests {
 public:
  // `why_stopped`: set by the time that the volume is stopped.
  Requests(VolumeContext& volume, Fence& fence, const std::string& why_stopped);

  // From now on, also after a restart. `by`: the requester. A volume that can't be taken down stays up.
  asio::awaitable<Result<>> keep_up();
  // Refused at once: its NFS server is silent, and it is not taken down by force; or Force, and it is not of
  // an NFS server.
  asio::awaitable<Result<>> keep_down(std::string by, OnDown on_down = OnDown::Disconnect);
  // Until the next start. `ask_down` returns when the volume is down, or with the reason why it can't be;
  // refused as by keep_down().
  void ask_up();
  asio::awaitable<Result<>> ask_down(OnDown on_down = OnDown::Disconnect);
  // Returns when the volume is taken over, with the name of the previous holder (empty if there was none), or
  // with the reason for the failure. IfHere: the operator has not agreed to a takeover, so it fails unless
  // the volume is mounted here for writing.
  enum class Take { Over, IfHere };
  asio::awaitable<Result<std::string>> take(Take what = Take::Over);
  // The cause of its failed attempts may be gone: the next attempt is due immediately.
  void try_now();

  // For the state machine.
  void begin_attempt();
  bool is_taking() const { return is_taking_; }
  bool is_attempt_due() const { return is_take_asked_ || is_try_due_; }  // without further waiting
  bool is_down_asked() const { return !volume_.wanted_up && !down_answer_; }
  OnDown on_down() const { return on_down_; }
  void answer_take(Result<> result);
  // A takeover that was asked for while the volume came up is not needed, unless it came up as published.
  void note_ready();
  // An intent that could not be recorded, because the state folder was full, is recorded as soon as it can
  // be.
  // Returns when it is due next; max: not at all.
  asio::awaitable<Duration> record_missed();
  void answer_down(Result<> result);
  void stop();  // callers no longer get an answer

  // A request that is accepted is not recorded yet.
  bool is_recording() const { return is_recording_; }
  // An error means unknown.
  const Result<Intent>& intent() const { return intent_; }
  // Everything of it is gone from this host. Without this record, the next start takes it down again.
  asio::awaitable<void> note_released();

 private:
  void want_up();
  Result<> check_may_leave(OnDown on_down) const;
  asio::awaitable<Result<>> go_down(OnDown on_down);
  asio::awaitable<Result<>> record(Intent intent);
  asio::awaitable<Result<>> save(Intent intent);
  void note(Result<Intent> intent);

  VolumeContext& volume_;
  Fence& fence_;
  const std::string& why_stopped_;
  std::string unrecorded_;  // why the intent is not recorded yet; empty: it is
  SteadyTime next_record_{};
  Event answered_;
  Result<Intent> intent_;
  bool is_recording_ = false;
  OnDown on_down_ = OnDown::Disconnect;
  bool is_new_down_ = false;  // it should be up until the `down` in progress
  std::optional<Result<>> down_answer_ = Result<>(), take_answer_;  // none: asked for, and not answered yet
  bool is_take_asked_ = false, is_taking_ = false;
  bool is_try_due_ = false;
};

}  // namespace spark::volumes
