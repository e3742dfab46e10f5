// The daemon's side of the pipe: starts a worker, forwards its progress, and ends it at its deadline. A
// worker that can't be killed (D state) is abandoned: its caller gets TimedOut immediately, and the worker
// counts as abandoned until it ends; no other connect is started for its target meanwhile. A worker that
// answered a volume waits for the next call, because starting a program costs more than most calls.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/workers/concurrency_limiter.hpp"
#include "daemon/workers/joined.hpp"

namespace spark::workers {

namespace asio = boost::asio;

struct Call {
  std::string verb;
  std::string subject;  // for messages: "volume datasets"
  json::object request;
  std::optional<Duration> deadline;  // none: until it ends or is cancelled
  bool shares_worker = false;        // may run in a worker that has answered other calls
  std::function<void(const json::object&)> on_progress;
  std::function<void(pid_t)> on_start;  // the worker's process; it has ended when run() returns
};

class Runner;

// Ends a running worker from outside its coroutine. Copies share one worker.
class Cancellation {
 public:
  void cancel();

 private:
  friend class Runner;
  struct State {
    bool asked = false;
    std::function<void()> kill;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Totals of workers since the daemon started.
struct WorkerCounts {
  std::uint64_t started = 0, timed_out = 0, abandoned = 0;
  std::size_t running = 0;  // now, without abandoned ones
};

class Runner {
 public:
  // `program` is executed as `program worker VERB`, or as `program worker serve` for calls that share a
  // worker.
  Runner(asio::any_io_executor executor, std::string program);

  asio::awaitable<Result<json::object>> run(Call call, Cancellation cancellation = {});
  // A short call, which may run in a worker that has answered others. A few run at once, the others wait for
  // their turn; the deadline starts with the turn.
  asio::awaitable<Result<json::object>> ask(std::string subject, std::string verb, json::object request,
                                            Duration deadline);

  // The same, made once for all concurrent requests; `subject` is that of the first one.
  asio::awaitable<Result<json::object>> ask_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline);

  // Abandoned workers that have not ended yet, by subject.
  const std::multiset<std::string>& abandoned() const { return abandoned_; }
  const WorkerCounts& counts() const { return counts_; }

 private:
  struct Worker;
  struct Running;
  using WorkerPtr = std::shared_ptr<Worker>;
  using Answer = std::optional<Result<json::object>>;  // none: it ended without an answer
  Result<WorkerPtr> worker_for(const Call& call);
  asio::awaitable<Answer> converse(std::shared_ptr<Running> running);
  asio::awaitable<void> reap(std::shared_ptr<Running> running);
  void keep(WorkerPtr worker);
  void let_go(WorkerPtr worker);

  asio::any_io_executor executor_;
  std::string program_;
  ConcurrencyLimiter limiter_;
  Joined joined_;
  std::vector<WorkerPtr> idle_;  // waiting for a call
  std::multiset<std::string> abandoned_;
  WorkerCounts counts_;
};

}  // namespace spark::workers
