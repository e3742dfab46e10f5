// Makes the sources of requests durable, and tells their states.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/jobs.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/outputs/stage_out_request.hpp"
#include "daemon/workers/job_turns.hpp"

namespace spark::outputs {

class SourceFlushes {
 public:
  // All outlive it.
  SourceFlushes(const Context& context, workers::UserTurns& turns, workers::JobTurns& workers)
      : context_(context), turns_(turns), workers_(workers) {}

  // The state of the request's source that is now on its drive (TreeTotals::written).
  asio::awaitable<Result<std::int64_t>> flush(StageOutRequest request, std::shared_ptr<Job> job);
  // The same before it is known whether the request joins a job: one at a time for each user.
  asio::awaitable<Result<std::int64_t>> look_again(StageOutRequest request);

 private:
  using Key = std::pair<uid_t, std::string>;  // the user, whose worker tells it, and the source

  workers::Call call_for(const StageOutRequest& request) const;
  Result<std::int64_t> state_in(const Result<json::object>& flushed, const StageOutRequest& request);

  const Context& context_;
  workers::UserTurns& turns_;
  workers::JobTurns& workers_;
  std::uint64_t looks_ = 0;  // at sources of requests that have no job yet
  // TreeTotals::identity of sources that this daemon has flushed: while a source has it, a repeated command
  // need not flush the whole file system, which a job may be writing.
  std::map<Key, std::int64_t> on_drive_;
};

}  // namespace spark::outputs
