// One output of the configuration: its folder is looked at every few seconds, and what is complete is sent.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/outputs/checkpoint_plan.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/outputs/known_checkpoints.hpp"
#include "daemon/outputs/stage_outs.hpp"

namespace spark::outputs {

// What is known of an output.
struct OutputFacts {
  std::string reason;            // why nothing is sent, or the last look failed; empty: nothing is in the way
  std::string latest_local;      // newest complete checkpoint here; empty: none
  std::string latest_published;  // newest on the volume; empty: none is known
  std::int64_t published_mtime_ns = 0;  // of that one
  Bytes backlog = 0;                    // complete here, and not on the volume yet
  std::uint64_t failures = 0;           // of sending, since the daemon started
  std::string unsent;  // why the newest checkpoint here is not on the volume: a sentence; empty: it is
};

class WatchedOutput : public std::enable_shared_from_this<WatchedOutput> {
 public:
  // Names of checkpoints on the volume that leases of this host hold.
  using Leased = std::function<std::vector<std::string>(const config::Output&)>;

  WatchedOutput(const Context& context, StageOuts& stage_outs, Leased leased, config::Output settings);

  const config::Output& settings() const { return settings_; }
  const OutputFacts& facts() const { return facts_; }
  json::object to_json() const;

  // Looks and sends until stop(); nothing is sent unasked by an output without a rule.
  asio::awaitable<void> run();
  void stop();

  // Sends the newest complete checkpoint, whatever is configured. NotFound: there is none.
  asio::awaitable<Result<std::shared_ptr<Job>>> send_newest();
  // A job that wrote to it has ended: looks at once, and does not wait after a failure. Refused: no rule says
  // what is complete.
  Result<> job_ended();
  // to_json() after a look at the folder and the volume.
  asio::awaitable<Result<json::object>> look_now();
  // {"local": PATH} or {"dataset": "VOLUME:PATH"}. NotFound: there is neither.
  asio::awaitable<Result<json::object>> latest();

 private:
  struct Seen {
    uid_t owner = 0;
    std::vector<LocalCheckpoint> local;
    std::optional<std::vector<PublishedCheckpoint>> published;  // none: the volume is not ready
  };
  asio::awaitable<Result<Seen>> look();
  asio::awaitable<void> list_published(Seen& seen);
  std::string unsent_of(const Seen& seen) const;
  asio::awaitable<void> work();
  asio::awaitable<Result<std::shared_ptr<Job>>> send(LocalCheckpoint checkpoint, uid_t owner,
                                                     bool waits_for_shards);
  asio::awaitable<void> tidy(CheckpointPlan plan);
  void note_end_of_sending();

  struct Retry {
    std::string failed;           // the checkpoint whose sending has begun, or failed last
    std::int64_t changed_ns = 0;  // of that one, when it began
    std::string error;            // why; empty: it did not
    Duration pause{0};
    SteadyTime next{};
  };

  const Context& context_;
  StageOuts& stage_outs_;
  Leased leased_;
  config::Output settings_;
  OutputFacts facts_;
  KnownCheckpoints known_;
  std::shared_ptr<Job> sending_;  // the last one that this output started; none yet
  Retry retry_;
  std::string linked_;  // what the local `latest` leads to
  asio::steady_timer timer_;
  bool is_stopped_ = false;
};

}  // namespace spark::outputs
