// Who needs which dataset kept, and until when: a process, a control group or a scheduler's job while it
// lives, or a time, whichever ends first. No lease is indefinite. Kept in memory, where it decides, and in
// the catalog, from where a restarted daemon takes it up again.
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
#include "daemon/workers/runner.hpp"
#include "staging/leases/lease.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

using staging::Lease;

class Leases {
 public:
  // `catalog_request`: the request that every worker call on the catalog begins with. `on_change`: a lease
  // was granted or has ended.
  Leases(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
         std::function<json::object()> catalog_request, std::function<void()> on_change);

  // Takes up what the catalog has; leases whose holder is gone are dropped.
  asio::awaitable<Result<>> load();

  // Holds from the call on, in place of one with the same id; answers once it is in the catalog too. NotFound
  // if that generation is there no more.
  asio::awaitable<Result<>> grant(Lease lease);
  void hold(Lease lease);  // the same, and the catalog is written behind
  Result<> release(std::string id);

  // Ends what workers hold in the catalog for requests; gives the ids of those whose copy is gone.
  asio::awaitable<Result<std::vector<std::string>>> end_holds(std::vector<std::string> ids);

  std::vector<const Lease*> of(const std::string& dataset) const;
  const std::map<std::string, Lease>& all() const { return leases_; }  // by id
  const asio::any_io_executor& executor() const { return executor_; }

 private:
  using TimerPtr = std::shared_ptr<asio::steady_timer>;
  void put(Lease lease);
  void look_again(const std::string& id);  // it has changed or ended
  asio::awaitable<void> watch(std::string id, TimerPtr timer);
  asio::awaitable<Result<>> write(std::string id);
  asio::awaitable<void> write_behind(std::string id);
  asio::awaitable<Result<json::object>> ask_catalog(std::string op, json::object request);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> catalog_request_;
  std::function<void()> on_change_;
  std::map<std::string, Lease> leases_;
  std::map<std::string, TimerPtr> watches_;  // by id: cancelling one has the lease looked at
  std::set<std::string> being_written_;      // ids
  asio::steady_timer written_;               // never expires: cancelling it wakes all who wait
};

std::string new_lease_id();
// The prefix of a lease that a worker takes for requests in progress. Only those requests end it.
std::string new_hold_id();

// {"id", "holder", "expires"}, as in `ls --json`, and what it ends with: {"pid"}, {"cgroup"}, {"job"}
json::object show(const Lease& lease);
// "pid 12 (python) (lease 1f), slurm job 7 (lease 2e)"
std::string holders_in_words(const std::vector<const Lease*>& leases);

}  // namespace spark::datasets
