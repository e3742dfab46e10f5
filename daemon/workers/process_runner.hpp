// The daemon's side of the pipe: starts a worker, forwards its progress, and ends it at its deadline. A
// worker that can't be killed (D state) is abandoned: its caller gets TimedOut immediately, and the worker
// counts as abandoned until it ends; no other connect is started for its target meanwhile. A worker that
// answered a volume waits for the next call, because starting a program costs more than most calls.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/workers/concurrency_limiter.hpp"
#include "daemon/workers/joined.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::workers {

class ProcessRunner final : public Runner {
 public:
  // `program` is executed as `program worker VERB`, or as `program worker serve` for calls that share a
  // worker.
  ProcessRunner(asio::any_io_executor executor, std::string program);

  asio::awaitable<Result<json::object>> run(Call call, Cancellation cancellation = {}) override;

  const std::multiset<std::string>& abandoned() const override { return abandoned_; }
  const WorkerCounts& counts() const override { return counts_; }

 private:
  struct Worker;
  struct Running;
  using WorkerPtr = std::shared_ptr<Worker>;
  using Answer = std::optional<Result<json::object>>;  // none: it ended without an answer
  asio::awaitable<Result<json::object>> run_in_worker(Call call, Cancellation cancellation);
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
