// The process that keeps staged copies out of the page cache: started, supervised, replaced.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/jobs.hpp"
#include "daemon/workers/job_turns.hpp"
#include "daemon/workers/runner.hpp"
#include "daemon/workers/supervisor.hpp"

namespace spark::memory {

class MemoryWatch {
 public:
  MemoryWatch(boost::asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs,
              std::string state_dir);

  void apply(const config::Config& config);
  // `memory` of `status --json`; null until the copies were looked at.
  json::value status() const;
  // Takes these datasets' copies, or all, out of memory.
  std::shared_ptr<Job> drop(std::vector<std::string> datasets, Asker asker);

 private:
  boost::asio::awaitable<void> run_drop(std::shared_ptr<Job> job, json::object request,
                                        workers::Cancellation cancellation);

  boost::asio::any_io_executor executor_;
  Jobs& jobs_;
  std::string state_dir_;
  workers::Supervisor watch_;
  workers::JobTurns turns_;
};

}  // namespace spark::memory
