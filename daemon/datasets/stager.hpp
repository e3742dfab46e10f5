// Datasets: staged one at a time, shared by all who ask, verified, evicted. Thinks only; the copying is a
// worker's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/job.hpp"
#include "daemon/datasets/leases.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

struct StageRequest {
  std::vector<std::string> datasets;
  std::optional<std::chrono::seconds> lease;  // by time
  pid_t holder_pid = 0;                       // by process; 0: none
  std::string holder;                         // for people
};

class Stager {
 public:
  // Where a dataset can be read now, or why it can't (its volume is not ready).
  struct SourcePlace {
    std::string path;   // absolute
    std::string mount;  // the volume's mount point that has to carry it; empty: any folder
  };
  using FindSource = std::function<Result<SourcePlace>(const config::Dataset&)>;
  using CurrentConfig = std::function<const config::Config&()>;

  Stager(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs, const Clock& clock,
         std::string state_dir, CurrentConfig config, FindSource find_source);

  // Reads catalog and leases. An unreadable catalog is told to everyone who asks, and changes nothing.
  asio::awaitable<void> start();

  Result<std::shared_ptr<Job>> stage(StageRequest request);
  Result<std::shared_ptr<Job>> verify(const std::string& dataset);
  Result<std::shared_ptr<Job>> evict(const std::string& dataset);
  Leases& leases() { return leases_; }

  Result<json::object> list() const;  // the object of `ls --json`
  json::array stages() const;         // of `status --json`
  json::value cache() const;          // of `status --json`; null while unknown

 private:
  // One dataset being staged, shared by every job that wants it.
  struct Task {
    Task(asio::any_io_executor executor, config::Dataset what, json::object first_progress)
        : dataset(std::move(what)),
          progress(std::move(first_progress)),
          changed(executor, asio::steady_timer::time_point::max()) {}
    config::Dataset dataset;
    json::object progress;
    std::optional<Result<json::object>> ended;
    asio::steady_timer changed;  // never expires: cancelling it wakes all who wait
    workers::Cancellation cancellation;
    unsigned users = 0;
    std::int64_t last_bytes = -1;
    SteadyTime last_moved;
  };
  using TaskPtr = std::shared_ptr<Task>;

  TaskPtr join_or_start(const config::Dataset& dataset);
  asio::awaitable<void> run_task(TaskPtr task);
  asio::awaitable<Result<json::object>> copy_in_turn(TaskPtr task);
  void note_progress(Task& task, const json::object& progress);
  asio::awaitable<Result<json::object>> wait_for_tasks(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                                       StageRequest request);
  asio::awaitable<void> run_stage_job(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                      StageRequest request);
  asio::awaitable<void> run_verify(std::shared_ptr<Job> job, std::string dataset,
                                   workers::Cancellation cancellation);
  asio::awaitable<void> run_evict(std::shared_ptr<Job> job, std::string dataset);
  json::object result_of(const Task& task, const StageRequest& request);
  asio::awaitable<void> refresh();
  json::object catalog_request() const;
  Result<> check_known(const std::string& dataset) const;

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  Jobs& jobs_;
  const Clock& clock_;
  std::string state_dir_;
  CurrentConfig config_;
  FindSource find_source_;
  Leases leases_;
  std::map<std::string, TaskPtr> tasks_;       // in flight, by dataset
  std::map<std::string, std::string> failed_;  // dataset → why its last staging failed
  std::multiset<std::string>
      wanted_;  // by stage jobs that have not ended: not evicted before their leases begin
  std::set<std::string> evicting_;
  bool copying_ = false;                         // one copy at a time has the source and the drive for itself
  asio::steady_timer turn_over_;                 // never expires: cancelled when the copy has ended
  std::optional<Result<json::object>> catalog_;  // {"datasets", "usage"} or why it can't be read
};

}  // namespace spark::datasets
