// The processes that serve peers and adopt folders while the configuration has a fleet: started, supervised,
// replaced.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <set>
#include <string>

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/workers/joined.hpp"
#include "daemon/workers/runner.hpp"
#include "daemon/workers/supervisor.hpp"

namespace spark::fleet {

class PeerService {
 public:
  PeerService(boost::asio::any_io_executor executor, workers::Runner& runner, std::string state_dir);

  void apply(const config::Config& config);
  json::value status() const;  // `fleet` of `status --json`; null means no fleet
  // Queries the peers. `own`: the rows of `ls --json`. Returns the object of `ls --fleet --json`.
  boost::asio::awaitable<Result<json::object>> compare(json::array own);

 private:
  boost::asio::awaitable<Result<json::object>> ask_peers();
  void log_refused();
  void log_not_adopted();
  json::array adopted() const;

  workers::Runner& runner_;
  std::string state_dir_;
  std::string listen_;                          // its addresses
  workers::Joined asks_;                        // of the peers
  std::set<std::string> told_;                  // hosts that were refused, with the reason
  workers::Supervisor server_;                  // no request means no fleet
  std::map<std::string, std::string> why_not_;  // the last reason that was logged, by dataset
  workers::Supervisor adopter_;                 // no request means no folder to adopt
};

}  // namespace spark::fleet
