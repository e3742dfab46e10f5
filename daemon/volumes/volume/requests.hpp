// What an operator wants of a volume: up, down, taken over. Recorded before anything is done about it, so
// that a crash in between leaves a volume that the next start takes down, never one that comes up unasked.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>

#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"

namespace spark::volumes {

// What becomes of the connection when a volume goes down.
enum class OnDown { Disconnect, KeepConnection };

class Requests {
 public:
  Requests(VolumeContext& volume, Fence& fence);

  // From now on, also after a restart. `by`: who asks. What can't be taken down stays up.
  asio::awaitable<Result<>> keep_up();
  asio::awaitable<Result<>> keep_down(std::string by);
  // Until the next start. `ask_down` ends when it is down or with why it can't be.
  void ask_up();
  asio::awaitable<Result<>> ask_down(OnDown on_down = OnDown::Disconnect);
  // Ends when it is taken over, with whom from (empty: from nobody), or with why it can't be.
  asio::awaitable<Result<std::string>> take();
  // What its failed attempts may have waited for has come about, as far as is known: the next one is due.
  void try_now();

  // For the state machine.
  void begin_attempt();
  bool is_taking() const { return is_taking_; }
  bool is_attempt_due() const { return is_take_asked_ || is_try_due_; }  // without any more waiting
  OnDown on_down() const { return on_down_; }
  void answer_take(const Result<>& result);
  void answer_down(Result<> result);
  void stop();  // nobody is answered any more

  // An error: not known.
  const Result<Intent>& intent() const { return intent_; }
  // Everything of it is gone from this host. Without the record, the next start takes it down once more.
  asio::awaitable<void> note_released();

 private:
  asio::awaitable<Result<>> record(Intent intent);
  asio::awaitable<Result<>> save(Intent intent);
  void note(Result<Intent> intent);
  asio::awaitable<void> wait_for_answer();

  VolumeContext& volume_;
  Fence& fence_;
  asio::steady_timer answered_;  // never expires: cancelled when an answer is there
  Result<Intent> intent_;
  bool is_recording_ = false;
  OnDown on_down_ = OnDown::Disconnect;
  bool is_new_down_ = false;  // it was to be up until the `down` that is under way
  std::optional<Result<>> down_answer_, take_answer_;
  bool is_take_asked_ = false, is_taking_ = false;
  bool is_try_due_ = false;
};

}  // namespace spark::volumes
