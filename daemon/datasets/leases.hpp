// Who needs which dataset kept, and until when: a process while it lives, or a time. No lease is for ever.
// Kept in memory, where it decides, and in the catalog, from where a restarted daemon takes it up again.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/workers/runner.hpp"
#include "staging/catalog.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

using staging::Lease;

class Leases {
 public:
  // `catalog_request`: the request that every worker call on the catalog begins with.
  Leases(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
         std::function<json::object()> catalog_request);

  // Takes up what the catalog has; process leases whose process is gone are dropped.
  asio::awaitable<Result<>> load();

  // Ends by itself when the process ends or the time comes. Gives the id.
  std::string grant(const std::string& dataset, std::uint64_t generation, std::string holder, pid_t pid,
                    std::optional<std::chrono::seconds> duration);
  Result<> release(const std::string& id);

  std::vector<const Lease*> of(const std::string& dataset) const;
  const Lease* find(const std::string& id) const;

 private:
  void watch(const Lease& lease);
  void record(const std::string& op, const Lease& lease);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> catalog_request_;
  std::map<std::string, Lease> leases_;
};

// {"id", "holder", "expires"}, as in `ls --json`
json::object show(const Lease& lease);

}  // namespace spark::datasets
