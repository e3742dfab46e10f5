// Actions on a real host.
#pragma once

#include "daemon/discovery/actions.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::discovery {

class WorkerActions final : public Actions {
 public:
  WorkerActions(workers::Runner& runner, HostSnapshot& snapshot, const std::string& target)
      : runner_(runner), snapshot_(snapshot), subject_("target " + target) {}

  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal, std::string interface) override;
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) override;
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal, std::string interface) override;
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem) override;
  Result<std::vector<nvmetcp::Controller>> controllers() override { return snapshot_.controllers(); }
  std::string autoconnect_rule() override;

 private:
  asio::awaitable<Result<json::object>> call(std::string verb, json::object request, Duration deadline);

  workers::Runner& runner_;
  HostSnapshot& snapshot_;
  std::string subject_;
};

}  // namespace spark::discovery
