// Existing copies: verified, scrubbed, evicted.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/jobs.hpp"
#include "daemon/workers/job_turns.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {

class Upkeep {
 public:
  Upkeep(const Context& context, Jobs& jobs, Activity& activity, Catalog& catalog, Leases& leases,
         const live::Views& views)
      : context_(context),
        jobs_(jobs),
        activity_(activity),
        catalog_(catalog),
        leases_(leases),
        views_(views),
        turns_(context.executor, context.runner) {}

  // Its copy, see Cache::verify, and its adopted folder, see fleet::verify_folder.
  Result<std::shared_ptr<Job>> verify(const std::string& dataset, bool sha256, Asker asker = {});
  Result<std::shared_ptr<Job>> scrub(std::vector<std::string> datasets, Asker asker = {});  // none means all
  Result<std::shared_ptr<Job>> evict(const std::string& dataset, Asker asker = {});

  void views_changed();  // a program may have closed the last file of a copy

  asio::awaitable<void> keep_scrubbing();  // each copy when it is due
  // With the next of its looks: the cache could not be compared with its catalog, as its drive was away.
  void recover_later() { recovered_.reset(); }

 private:
  struct Verification {
    std::string dataset;
    bool has_copy = false, sha256 = false;
    std::optional<config::Dataset> adopted{};
  };
  asio::awaitable<void> run_verify(std::shared_ptr<Job> job, Verification wanted,
                                   workers::Cancellation cancellation);
  asio::awaitable<void> run_scrub(std::shared_ptr<Job> job, std::vector<std::string> datasets,
                                  workers::Cancellation cancellation);
  asio::awaitable<Outcome> read_back(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                     workers::Priority priority, workers::Cancellation cancellation);
  asio::awaitable<Outcome> read_adopted(std::shared_ptr<Job> job, config::Dataset dataset, bool sha256,
                                        workers::Cancellation cancellation);
  asio::awaitable<void> run_evict(std::shared_ptr<Job> job, std::string dataset,
                                  workers::Cancellation cancellation);
  asio::awaitable<Outcome> evict_now(std::string dataset);
  Result<> check_unused(const std::string& dataset) const;
  Result<> check_closed(const std::string& dataset) const;    // by those who read it when it was staged
  asio::awaitable<void> recover(std::uint64_t unsuccessful);  // stagings until now
  std::optional<std::string> due_for_scrub() const;
  Result<std::vector<std::string>> readable() const;  // with a copy

  const Context& context_;
  Jobs& jobs_;
  Activity& activity_;
  Catalog& catalog_;
  Leases& leases_;
  const live::Views& views_;
  workers::JobTurns turns_;
  // Unsuccessful stagings after which the cache was recovered. One may fail while it is opened.
  std::optional<std::uint64_t> recovered_ = 0;
  bool is_recovering_ = false;
  std::vector<std::shared_ptr<Timer>> closing_;    // of evictions that wait for programs' last files
  std::map<std::string, SteadyTime> scrub_tried_;  // when its last scrub could not be done
};

}  // namespace spark::datasets
