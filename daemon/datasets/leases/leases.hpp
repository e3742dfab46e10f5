// The leases on datasets. A lease ends with its process, its control group or its scheduler's job, or at a
// given time, whichever comes first. No lease is indefinite. Leases are kept in memory, which is
// authoritative, and in the catalog, from which a restarted daemon restores them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
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
#include "daemon/event.hpp"
#include "daemon/timer.hpp"
#include "daemon/workers/runner.hpp"
#include "staging/leases/lease.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

using staging::Lease;

// A lease that a worker holds for a request in progress.
struct CopyHold {
  std::string id, dataset;
};

class Leases {
 public:
  // `catalog_request`: the first part of every worker request on the catalog. `on_change`: a lease was
  // granted or has ended.
  Leases(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
         std::function<json::object()> catalog_request, std::function<void()> on_change);

  // Restores the catalog's leases; drops those of holders that no longer exist.
  asio::awaitable<Result<>> load();

  // Holds from the call on, replacing a lease with the same ID; returns once it is in the catalog too.
  // NotFound if that generation no longer exists.
  asio::awaitable<Result<>> grant(Lease lease);
  void hold(Lease lease);  // the same, but the catalog is written later
  Result<> release(std::string id);
  // Returns when everything granted, held or released before this call is in the catalog, or could not be
  // written there, not even now.
  asio::awaitable<void> written();
  // Of all of them: those beside the copies are where the cache was before.
  asio::awaitable<void> write_all();

  // Takes a hold on a copy, as workers do, and notes its use. Unavailable: it is not in the cache any more.
  asio::awaitable<Result<>> serve(Lease hold, std::string path);
  // Ends them; see written(). Those of a dataset stay while a lease on it was granted and is not in the
  // catalog: they keep its copy.
  asio::awaitable<void> end_holds(std::vector<CopyHold> holds);

  std::vector<const Lease*> of(const std::string& dataset) const;
  const std::map<std::string, Lease>& all() const { return leases_; }  // by ID
  const asio::any_io_executor& executor() const { return executor_; }

 private:
  using TimerPtr = std::shared_ptr<Timer>;
  void put(Lease lease);
  void look_again(const std::string& id);  // after a change or the end of the lease
  asio::awaitable<void> watch(std::string id, TimerPtr timer);
  asio::awaitable<Result<>> write(std::string id);
  asio::awaitable<void> write_behind(std::string id);
  asio::awaitable<void> keep_writing(std::set<std::string> ids);
  void recorded(const std::string& id);
  asio::awaitable<Result<json::object>> ask_catalog(std::string op, json::object request);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> catalog_request_;
  std::function<void()> on_change_;
  std::map<std::string, Lease> leases_;
  std::map<std::string, TimerPtr> watches_;        // by ID: cancelling one triggers a check of its lease
  std::set<std::string> being_written_;            // IDs
  std::set<std::string> unwritten_;                // IDs: written again later
  std::optional<std::set<std::string>> released_;  // IDs; set while the catalog's leases are read
  std::map<std::string, std::string> unrecorded_;  // ID → dataset: granted, and not in the catalog yet
  std::vector<CopyHold> kept_holds_;               // end once all leases of their dataset are in the catalog
  Event write_ended_;
};

std::string new_lease_id();
// The prefix of a lease that a worker takes for requests in progress. Only those requests end it.
std::string new_hold_id();

// {"id", "holder", "expires"}, as in `ls --json`, and the object that it ends with: {"pid"}, {"cgroup"},
// {"job"}
json::object show(const Lease& lease);
// "pid 12 (python) (lease 1f), slurm job 7 (lease 2e)"
std::string holders_in_words(const std::vector<const Lease*>& leases);

}  // namespace spark::datasets
