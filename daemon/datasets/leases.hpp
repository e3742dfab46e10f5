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

namespace spark::datasets {

namespace asio = boost::asio;

struct Lease {
  std::string id;
  std::string dataset;
  std::uint64_t generation = 0;
  std::string holder;  // for people: "pid 4711 (torchrun), uid 1000" or "uid 1000"
  pid_t pid = 0;       // 0: by time alone
  std::optional<WallTime> expires;
};

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
  void record(json::object change);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> catalog_request_;
  std::map<std::string, Lease> leases_;
};

json::object to_json(const Lease& lease);

// The kernel's start time of a process, which tells it from a later one with the same pid; 0 if there is
// none.
std::uint64_t start_time_of(pid_t pid);

}  // namespace spark::datasets
