// Workers of jobs that any member of the group may start: each user has four at once for each verb, and the
// user's other jobs wait. Root's do not wait.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>

#include "daemon/jobs.hpp"
#include "daemon/workers/runner.hpp"
#include "daemon/workers/user_turns.hpp"

namespace spark::workers {

class JobTurns {
 public:
  JobTurns(asio::any_io_executor executor, Runner& runner) : turns_(std::move(executor)), runner_(runner) {}

  // A cancelled job's place in the queue, and its worker, end.
  void make_cancellable(Job& job, Cancellation cancellation);
  asio::awaitable<Result<json::object>> run(std::shared_ptr<Job> job, Call call, Cancellation cancellation);
  // The turn alone, for work that decides only then. A job that was cancelled meanwhile has none.
  asio::awaitable<void> take(std::shared_ptr<Job> job);
  void give_back(const Job& job);

 private:
  UserTurns turns_;
  Runner& runner_;
};

}  // namespace spark::workers
