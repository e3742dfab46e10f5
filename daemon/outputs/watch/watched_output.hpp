// One output of the configuration: its folder is checked every few seconds, and complete checkpoints are
// sent.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/outputs/context.hpp"
#include "daemon/outputs/stage_outs.hpp"
#include "daemon/outputs/watch/checkpoint_plan.hpp"
#include "daemon/outputs/watch/known_checkpoints.hpp"
#include "daemon/outputs/watch/local_cleanup.hpp"
#include "daemon/outputs/watch/other_hosts.hpp"
#include "daemon/timer.hpp"

namespace spark::outputs {

// The state of an output.
struct OutputFacts {
  std::string reason;            // why nothing is sent, or why the last check failed; empty means no problem
  std::string latest_local;      // newest complete checkpoint here; empty means none
  std::string latest_published;  // newest on the volume; empty means unknown
  std::int64_t published_mtime_ns = 0;       // its modification time
  Bytes backlog = 0;                         // complete here, and not sent yet, also while the volume is away
  Bytes newest_bytes = 0, volume_bytes = 0;  // of the newest complete one here; of the volume, 0: unknown
  std::uint64_t failures = 0;                // failed sendings since the daemon started
  // Checkpoints are complete faster than they are sent: sending leaves no share of the drive to others.
  bool is_behind = false;
  // A sentence: why the newest checkpoint here is not on the volume; empty means that it is.
  std::string unsent;
};

class WatchedOutput : public std::enable_shared_from_this<WatchedOutput> {
 public:
  WatchedOutput(const Context& context, StageOuts& stage_outs, config::Output settings);

  const config::Output& settings() const { return settings_; }
  const OutputFacts& facts() const { return facts_; }
  json::object to_json() const;

  // Checks and sends until stop(); for an output without a rule, sends only on request.
  asio::awaitable<void> run();
  void stop();

  // Sends the newest complete checkpoint, regardless of the rule; waits for one that changed a moment ago.
  // NotFound if there is none, or no folder; Unavailable if its file system is not mounted. With `accepted`,
  // of a request that a client repeats since the daemon was restarted: that checkpoint in that state, and no
  // other. Mismatch if it is not complete any more.
  asio::awaitable<Result<std::shared_ptr<Job>>> send_newest(std::optional<Accepted> accepted = {});
  // A job that wrote to it has ended: checks immediately, even after a failure. Refused if it has no rule for
  // completeness.
  Result<> job_ended();
  // to_json() after a check of the folder and the volume. NotFound and Unavailable: see send_newest().
  asio::awaitable<Result<json::object>> look_now();
  // {"local": PATH} or {"dataset": "VOLUME:PATH"}; waits for one that changed a moment ago. Unavailable if
  // the volume can't be read, as another host may have published a higher one, unless the caller accepts a
  // local one then (`offline`). NotFound only if there is neither, not even an unproven one, and the volume
  // was read: a job then starts from scratch. With several hosts also {"pending": {"name", "is_sending",
  // "others_progress", "may_publish"}} if this host has a newer one, which is published when all hosts have
  // sent it; the caller asks again while "may_publish" (OtherHosts::is_awaited).
  asio::awaitable<Result<json::object>> latest(bool offline = false);

 private:
  struct Seen : Holdings {
    std::string missing;        // a sentence: there is no folder, or not the one; empty means that there is
    bool is_away = false;       // its file system is not mounted: it may have checkpoints
    bool is_unmounted = false;  // that of /etc/fstab; nothing is known of what is on it
    uid_t owner = 0;            // of the folder
    std::string unlisted;       // why the volume could not be read
    HoldingFolder holding;
    std::string misnamed;  // a folder that looks like a checkpoint, if none counts; empty means none
    std::string pointer;   // name of the checkpoint that `latest` there leads to
    std::vector<UnreadableCopy> unreadable;  // on the volume
    std::vector<std::string> unknown;        // there without a manifest: a person may have copied them
    Bytes volume_bytes = 0;
  };
  // ByRule: does not wait for other hosts' shards. Again: StageOutRequest::is_repeated.
  enum class Asked { ByRule, Now, Again };
  asio::awaitable<Result<Seen>> look();
  asio::awaitable<Result<Seen>> look_until_settled();
  tl::unexpected<Error> no_folder(const Seen& seen) const;
  tl::unexpected<Error> no_latest(const Seen& seen) const;
  asio::awaitable<void> list_published(Seen& seen);
  json::object pending(const Seen& seen, const LocalCheckpoint& newest, bool may_publish, SteadyTime asked);
  void note_facts(const Seen& seen);
  std::string unsent_of(const Seen& seen, const CheckpointPlan& plan) const;
  asio::awaitable<void> work();
  asio::awaitable<void> announce();
  void tell_others(std::vector<std::string> awaited, uid_t owner);
  asio::awaitable<Result<std::shared_ptr<Job>>> send(LocalCheckpoint checkpoint, const Seen& seen,
                                                     Asked asked);
  asio::awaitable<void> note_end_of_sending(std::shared_ptr<Job> job, LocalCheckpoint sent);
  void note_result(const json::object& event);
  bool is_busy() const;
  bool was_tried(const LocalCheckpoint& checkpoint) const;

  struct Retry {
    std::string failed;        // name of the checkpoint that was sent, or failed, last
    std::int64_t written = 0;  // when the sending started
    std::string error;         // of the failure; empty means that it has not failed
    Duration pause{0};
    SteadyTime next{};
  };

  struct Hold {
    bool is_needed = false;  // sending was behind once: the job's rotation may delete what is sent
    std::string trouble;     // why what is sent could not be held; empty means that it was, or need not be
  };

  const Context& context_;
  StageOuts& stage_outs_;
  config::Output settings_;
  OutputFacts facts_;
  KnownCheckpoints known_;
  OtherHosts others_;
  std::optional<std::int64_t> boot_ns_;  // of the host, at the first look
  std::shared_ptr<Job> sending_;         // the last job that this output started; none before the first
  std::set<std::uint64_t> followed_;     // IDs of jobs whose end is noted
  Retry retry_;
  LocalCleanup cleanup_;
  SteadyTime next_pointer_{};  // before it, the pointer is left alone
  Hold hold_;
  struct Pause {  // between two looks
    Timer timer;
    bool is_short = false;  // the next one
    Duration cpu_time{0};   // that the last look took
  } pause_;
  bool is_stopped_ = false;
};

}  // namespace spark::outputs
