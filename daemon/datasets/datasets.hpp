// Datasets: staged one at a time from each drive, shared by all requests, verified, scrubbed, evicted.
// Decides only; workers do the copying.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>

#include "daemon/datasets/attempts.hpp"
#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/place/cache_place.hpp"
#include "daemon/datasets/prefetches.hpp"
#include "daemon/datasets/requests.hpp"
#include "daemon/datasets/turns.hpp"
#include "daemon/datasets/upkeep.hpp"
#include "daemon/jobs.hpp"

namespace spark::datasets {

// The object of `ls --json`.
Result<json::object> list(const Context& context, const Activity& activity, const Catalog& known,
                          const Leases& leases, const Jobs& jobs, const live::Views& views);
// `stages` of `status --json`.
json::array stages(const Activity& activity, const Jobs& jobs);

class Datasets {
 public:
  Datasets(Context context, Jobs& jobs);

  // Reads the leases, takes over live views and starts the recovery of the cache, with retries until it
  // succeeds; stagings wait for the views alone. Then runs each scrub when it is due, until the daemon stops.
  // While the catalog is unreadable, requests that need it fail with its error and change nothing.
  asio::awaitable<void> start();

  Requests& requests() { return requests_; }
  Upkeep& upkeep() { return upkeep_; }
  CachePlace& cache_place() { return cache_place_; }
  Leases& leases() { return leases_; }
  const Leases& leases() const { return leases_; }
  JobLeases& job_leases() { return job_leases_; }
  const Totals& totals() const { return activity_.totals; }
  // A training job uses a copy, so copying must reduce its load (`cache.yield`).
  bool must_yield() const { return turns_.must_yield(); }
  // Names of the datasets that are leased, or being staged or waited for, on this host. Unavailable until the
  // leases of an earlier daemon are known.
  Result<std::set<std::string>> in_use() const;
  void config_changed();
  asio::awaitable<void> stop() { return views_.stop(); }  // before the daemon ends
  // Before a request about the cache: an error of its drive may have been repaired meanwhile.
  asio::awaitable<void> look_again() { return catalog_.look_again(); }

  Result<json::object> list() const;  // the object of `ls --json`
  json::array stages() const;         // of `status --json`
  json::value cache() const;          // of `status --json`; null while unknown
  std::string cache_problem() const;  // why nothing can be staged; empty: nothing is wrong, or not yet known

 private:
  asio::awaitable<Result<>> open();
  asio::awaitable<void> take_over(std::string why_not);  // the live views of an earlier daemon
  asio::awaitable<void> look_at_cache();
  void leases_changed();
  std::set<std::string> busy() const;    // datasets being staged, waited for or evicted
  std::set<std::string> viewed() const;  // with live views that programs may have open

  Context context_;
  Jobs& jobs_;
  Activity activity_;
  Catalog catalog_;
  Leases leases_;
  JobLeases job_leases_;
  Turns turns_;
  Prefetches prefetches_;
  live::Views views_;
  Attempts attempts_;
  Requests requests_;
  Upkeep upkeep_;
  CachePlace cache_place_;
  bool knows_leases_ = false;
  std::string path_{};  // of the cache, when it was recovered
};

}  // namespace spark::datasets
