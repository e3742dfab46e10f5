// The daemon's side of the pipe: starts a worker, hands its progress on, and gives up on it at its deadline.
// A worker that can't be killed (D state) is abandoned: its caller gets TimedOut at once, and it is counted
// until it ends; no other connect is started for its target meanwhile. One that answered a volume waits for
// the next question: starting a program costs more than most answers.
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
  std::string subject;  // for sentences: "volume datasets"
  json::object request;
  std::optional<Duration> deadline;  // none: until it ends or is cancelled
  bool shares_worker = false;        // asked of a worker that may have answered others before
  std::function<void(const json::object&)> on_progress;
  std::function<void(pid_t)> on_start;  // the worker's process; gone when run() answers
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

// What became of the workers since the daemon started.
struct WorkerCounts {
  std::uint64_t started = 0, timed_out = 0, abandoned = 0;
  std::size_t running = 0;  // now, without those that were given up on
};

class Runner {
 public:
  // `program`: what to execute as `program worker VERB`, or `program worker serve` for calls that share one.
  Runner(asio::any_io_executor executor, std::string program);

  asio::awaitable<Result<json::object>> run(Call call, Cancellation cancellation = {});
  // A short question, for a worker that may have answered others before; a few are asked at once, the others
  // wait for their turn. The deadline begins with it.
  asio::awaitable<Result<json::object>> ask(std::string subject, std::string verb, json::object request,
                                            Duration deadline);

  // The same, asked once for all who ask it meanwhile; `subject` is the first one's.
  asio::awaitable<Result<json::object>> ask_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline);

  // Workers that were given up on and have not ended yet, by subject.
  const std::multiset<std::string>& abandoned() const { return abandoned_; }
  const WorkerCounts& counts() const { return counts_; }

 private:
  struct Worker;
  struct Running;
  using WorkerPtr = std::shared_ptr<Worker>;
  using Answer = std::optional<Result<json::object>>;  // none: it ended without one
  Result<WorkerPtr> worker_for(const Call& call);
  asio::awaitable<Answer> converse(std::shared_ptr<Running> running);
  asio::awaitable<void> reap(std::shared_ptr<Running> running);
  void keep(WorkerPtr worker);
  void let_go(WorkerPtr worker);

  asio::any_io_executor executor_;
  std::string program_;
  ConcurrencyLimiter limiter_;
  Joined joined_;
  std::vector<WorkerPtr> idle_;  // they wait for a question
  std::multiset<std::string> abandoned_;
  WorkerCounts counts_;
};

}  // namespace spark::workers
