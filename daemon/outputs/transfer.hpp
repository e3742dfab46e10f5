// One copy to a volume: retried until it is published or has failed permanently.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "daemon/event.hpp"
#include "daemon/jobs.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/outputs/store.hpp"
#include "daemon/timer.hpp"
#include "daemon/workers/priority.hpp"
#include "daemon/workers/user_turns.hpp"

namespace spark::outputs {

using Outcome = Result<json::object>;

class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  // The first two outlive it.
  Transfer(const Context& context, workers::UserTurns& turns, StageOutRequest request,
           std::shared_ptr<Job> job);

  const StageOutRequest& request() const { return request_; }
  const std::shared_ptr<Job>& job() const { return job_; }
  const json::object& progress() const { return progress_; }
  bool is_cancelled() const { return cancelled_.has_value(); }
  // From now on: the state of its source is known, or a requester waits for the shards of all hosts.
  void amend(StageOutRequest request) { request_ = std::move(request); }

  // Its source is on its drive, its state is known, and its request is recorded; or why not.
  void note_durable(Result<> durable);
  // Waits for note_durable().
  asio::awaitable<Result<>> until_durable();
  // Runs the copy to its end. Waits for its turn, and while the volume is away.
  asio::awaitable<Outcome> run();
  // Its own shard is sent, and `answer` lists the hosts with shards on the volume. Returns after one
  // interval.
  asio::awaitable<void> wait_for_shards(const json::object& answer);
  // Returns after this time, or once it is cancelled.
  asio::awaitable<void> wait(Duration time);
  // Deletes no older copy that the configuration now keeps.
  void config_changed();
  // It ends with this error, unless it has just published. None: a person cancels it.
  void cancel(std::optional<Error> why = {});

 private:
  // One worker's attempt. A new object for each attempt.
  struct Attempt {
    workers::Cancellation cancellation;
    pid_t worker = 0;  // 0 means none
    workers::Priority priority = workers::Priority::Normal;
    std::string given_up;  // why its worker was stopped; empty means that it was not
    bool is_over = false, has_moved = false;
    bool is_watched = true;    // also while older copies are deleted
    bool is_final = false;     // its worker says that a retry can't help
    bool saw_outage = false;   // its volume was away since the last byte moved
    bool has_yielded = false;  // it was stopped because other copies wait, and no byte moved
    std::int64_t last_bytes = -1;
    SteadyTime last_moved{}, back_since{};
  };

  asio::awaitable<Outcome> send();
  asio::awaitable<void> take_turn();
  bool must_yield(const Attempt& attempt) const;
  asio::awaitable<Outcome> attempt(VolumePlace place);
  asio::awaitable<void> prune(json::object& sent);
  asio::awaitable<Result<json::object>> delete_older(Keep keep);
  asio::awaitable<void> watch(std::shared_ptr<Attempt> attempt);
  void look_at(Attempt& attempt);
  void give_up(Attempt& attempt, std::string reason);
  void set_priority(Attempt& attempt);
  void note_progress(Attempt& attempt, const json::object& progress);
  void show_stalled(const std::string& reason);
  void show(json::object progress);

  const Context& context_;
  workers::UserTurns& turns_;
  StageOutRequest request_;
  std::shared_ptr<Job> job_;
  const workers::UserTurns::Claim claim_;
  json::object progress_;
  std::shared_ptr<Attempt> attempt_;  // the current or the last one; none before the first
  Timer pause_;
  std::optional<Result<>> durable_;  // none until it is known
  Event durable_noted_;
  std::optional<Error> cancelled_;  // the error with which it then ends
  unsigned yields_ = 0;             // since a byte moved
  Keep keep_;                       // while older copies are deleted
  struct Reached {
    bool is_published = false;
    // When its shard was on the volume, by the volume's clock; 0 means not yet, or not known since a restart.
    std::int64_t shard_sent_ns = 0;
  } reached_;
};
using TransferPtr = std::shared_ptr<Transfer>;

}  // namespace spark::outputs
