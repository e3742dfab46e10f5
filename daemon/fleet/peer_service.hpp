// The process that serves peers while the configuration has a fleet: started, supervised, replaced.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::fleet {

class PeerService {
 public:
  PeerService(boost::asio::any_io_executor executor, workers::Runner& runner, std::string state_dir);

  void apply(const config::Config& config);
  json::value status() const;  // `fleet` of `status --json`; null means no fleet
  // Queries the peers. `own`: the rows of `ls --json`. Returns the object of `ls --fleet --json`.
  boost::asio::awaitable<Result<json::object>> compare(json::array own);

 private:
  boost::asio::awaitable<void> run(std::uint64_t turn, json::object request);
  void log_refused();

  boost::asio::any_io_executor executor_;
  workers::Runner& runner_;
  std::string state_dir_;
  json::object wanted_;     // the request; empty means no fleet
  std::string listen_;      // its addresses
  std::uint64_t turn_ = 0;  // number of the configuration
  workers::Cancellation cancellation_;
  json::object last_;           // its last report
  std::set<std::string> told_;  // hosts that were refused, with the reason
  std::optional<Error> error_;
};

}  // namespace spark::fleet
