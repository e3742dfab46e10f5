// Datasets: staged one at a time from each drive, shared by all who ask, verified, scrubbed, evicted. Thinks
// only; the copying is a worker's.
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
#include "daemon/datasets/task.hpp"
#include "daemon/datasets/totals.hpp"
#include "daemon/workers/priority.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

struct StageRequest {
  std::vector<std::string> datasets;
  std::optional<std::chrono::seconds> lease;  // by time
  staging::ProcessId process;                 // by process, as it was when it was asked for
  staging::Cgroup cgroup;                     // by control group
  std::string holder;                         // for people
  Bytes max_rate = 0;                         // 0: no limit
  bool allow_dirty = false;                   // from a volume that another host writes, too

  bool wants_lease() const { return lease || process.pid != 0 || !cgroup.path.empty(); }
};

// How long the stager waits for what.
struct Patience {
  Duration retry{2000};             // after the first failure of a source that looks healthy; then doubled
  unsigned tries = 5;               // of such a source, without a byte copied
  Duration look{1000};              // at a volume that is away
  Duration stalled{10'000};         // without a byte: longer than any healthy flush or reconnect delay
  Duration stuck{60'000};           // without a byte although the volume is back: the worker is replaced
  Duration upkeep{60'000};          // between two looks for a copy to scrub
  Duration scrub_again{3'600'000};  // after a scrub that could not be done
  Duration settling{100};           // between looks at a volume that is on its first attempt
  Duration doubt{30'000};           // until a doubt that should have passed by itself counts
  Duration recover_again{30'000};   // after a recovery of the cache that could not begin
};

class Stager {
 public:
  // Where a dataset can be read now, or why it can't (its volume is not ready).
  struct SourcePlace {
    std::string path;           // absolute
    std::string mount;          // the volume's mount point that has to carry it; empty: any folder
    std::string doubt{};        // why what is read there can't be trusted; empty: it can
    bool doubt_passes = false;  // by itself, in seconds
    // Of a volume that another host may write: what has to be unchanged after the copy. Else no device.
    std::string device{};
    std::uint64_t stamp = 0;       // of the device's superblock
    std::uint64_t generation = 0;  // that its writer published last; 0: none
    std::string drive{};           // that is read: a volume, or the mount that carries a folder
  };
  using FindSource = std::function<Result<SourcePlace>(const config::Dataset&)>;
  // Its volume is on its first attempt, as after the daemon's start: worth the moment that it takes.
  using IsSettling = std::function<bool(const config::Dataset&)>;
  using CurrentConfig = std::function<const config::Config&()>;

  Stager(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs, const Clock& clock,
         std::string state_dir, CurrentConfig config, FindSource find_source, IsSettling is_settling,
         Patience patience);

  // Reads the leases and has the cache recovered, again and again until that succeeds; no staging waits for
  // it. Then runs each scrub when it is due, until the daemon stops. Requests that need the catalog fail with
  // its error, and change nothing, while it is unreadable.
  asio::awaitable<void> start();

  Result<std::shared_ptr<Job>> stage(StageRequest request);
  Result<std::shared_ptr<Job>> verify(const std::string& dataset, bool sha256);  // see Cache::verify
  Result<std::shared_ptr<Job>> scrub(std::vector<std::string> datasets);         // none: all
  Result<std::shared_ptr<Job>> evict(const std::string& dataset);
  Leases& leases() { return leases_; }
  const Leases& leases() const { return leases_; }
  void config_changed();

  Result<json::object> list() const;  // the object of `ls --json`
  json::array stages() const;         // of `status --json`
  json::value cache() const;          // of `status --json`; null while unknown
  const Totals& totals() const { return totals_; }

 private:
  using Outcome = Result<json::object>;

  // stager.cpp: jobs
  asio::awaitable<Result<>> recover();
  asio::awaitable<void> look_over();
  Result<const json::object*> known_catalog() const;
  TaskPtr join(const config::Dataset& dataset, const StageRequest& request);
  TaskPtr make_task(const config::Dataset& dataset, const StageRequest& request);
  asio::awaitable<void> run_stage_job(std::shared_ptr<Job> job, std::vector<TaskPtr> tasks,
                                      StageRequest request);
  asio::awaitable<Outcome> wait_for_tasks(std::shared_ptr<Job> job, const std::vector<TaskPtr>& tasks,
                                          const StageRequest& request, std::vector<std::string>& granted);
  asio::awaitable<Outcome> result_of(TaskPtr task, const StageRequest& request,
                                     std::vector<std::string>& granted);
  std::vector<TaskPtr> let_go(const std::vector<TaskPtr>& tasks, Bytes max_rate);
  asio::awaitable<Result<>> end_holds(std::vector<TaskPtr> tasks);
  asio::awaitable<void> refresh();
  void tell_writable();
  json::object catalog_request() const;

  // attempts.cpp: one dataset, until it is staged or failed for good
  asio::awaitable<void> run_task(TaskPtr task);
  asio::awaitable<Outcome> stage_to_the_end(TaskPtr task);
  asio::awaitable<Outcome> attempt_in_turn(TaskPtr task);
  asio::awaitable<Outcome> attempt(TaskPtr task, bool only_cached);
  asio::awaitable<bool> doubt_passed(TaskPtr task);
  asio::awaitable<Outcome> serve_or_refuse(TaskPtr task, SourcePlace source);
  asio::awaitable<void> wait_for_source(TaskPtr task, std::string reason, Duration at_least);
  workers::Call call_to_stage(const TaskPtr& task, const SourcePlace& source);
  void note_progress(Task& task, const json::object& progress);
  void keep_failure(const std::string& name, std::string why);
  void count(const Task& task, const Outcome& ended);
  json::array in_use() const;
  bool must_yield() const;
  void set_priorities();

  // turns.cpp
  bool is_redefined(const Task& task) const;
  asio::awaitable<void> wait_to_begin_again(TaskPtr task);
  void apply_limit(Task& task);
  Slot slot_for(const Task& task, const SourcePlace& source) const;
  bool must_wait(const Task& task) const;
  void take_turn(Task& task, Slot slot);
  void give_turn_back(Task& task);

  // listing.cpp
  std::vector<std::string> jobs_that_stage(const std::string& dataset) const;  // their ids
  void compare_generations(const std::string& name, json::object& row) const;

  // upkeep.cpp: copies that are there
  asio::awaitable<void> run_verify(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                   workers::Cancellation cancellation);
  asio::awaitable<void> run_scrub(std::shared_ptr<Job> job, std::vector<std::string> datasets,
                                  workers::Cancellation cancellation);
  asio::awaitable<Outcome> read_back(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                     workers::Priority priority, workers::Cancellation cancellation);
  asio::awaitable<void> run_evict(std::shared_ptr<Job> job, std::string dataset);
  asio::awaitable<void> keep_scrubbing();
  std::optional<std::string> due_for_scrub() const;
  Result<> check_known(const std::string& dataset) const;
  Result<std::vector<std::string>> known() const;
  std::vector<std::string> readable() const;  // while the catalog is known

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  Jobs& jobs_;
  const Clock& clock_;
  std::string state_dir_;
  CurrentConfig config_;
  FindSource find_source_;
  IsSettling is_settling_;
  Patience patience_;
  Leases leases_;
  std::map<std::string, TaskPtr> tasks_;       // in flight, by dataset
  std::uint64_t newest_task_ = 0;              // its number
  std::map<std::string, std::string> failed_;  // dataset → why its last staging failed
  // By stage jobs that have not ended: not evicted before their leases begin.
  std::multiset<std::string> wanted_;
  // Leases of stage jobs that have not ended: nobody trains yet.
  std::set<std::string> early_leases_;
  std::set<std::string> evicting_;
  std::map<std::string, SteadyTime> scrub_tried_;  // when a scrub of it last could not be done
  std::set<Slot> taken_;                           // by copies
  asio::steady_timer turn_over_;                   // never expires: cancelled when a copy has ended
  std::optional<Outcome> catalog_;                 // {"datasets", "usage"} or why it can't be read
  bool is_looked_over_ = false;                    // it is as the disk is, since the daemon's start
  std::string writable_because_;  // why jobs can change the copies, as it was told; empty: they can't
  std::uint64_t refreshes_ = 0, catalog_turn_ = 0;  // asked; the one whose answer catalog_ is
  Totals totals_;
};

}  // namespace spark::datasets
