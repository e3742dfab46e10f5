// Actions on a real host.
#pragma once

#include "daemon/discovery/actions.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/runner.hpp"
#include "daemon/workers/wire.hpp"
#include "nvmetcp/discovery/autoconnect.hpp"

namespace spark::discovery {

class WorkerActions final : public Actions {
 public:
  WorkerActions(workers::Runner& runner, HostSnapshot& snapshot, const std::string& target)
      : runner_(runner), snapshot_(snapshot), subject_("target " + target) {}

  Result<std::vector<nvmetcp::Controller>> controllers() override { return snapshot_.controllers(); }

  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal, std::string interface) override {
    json::object request{{"portal", to_message(portal)}, {"interface", interface}};
    auto answer = co_await call("watch-discovery", std::move(request), kFabric);
    co_return workers::message_of<nvmetcp::Connection>(std::move(answer));
  }

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) override {
    json::object request{{"controller", controller}};
    auto answer = co_await call("read-discovery", std::move(request), kRead);
    co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
  }

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal, std::string interface) override {
    json::object request{{"portal", to_message(portal)}, {"interface", interface}};
    // Volumes of the target may make the same call.
    auto answer = co_await runner_.ask_jointly(subject_, "discover", std::move(request), kFabric);
    snapshot_.forget();
    co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
  }

  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem) override {
    json::object request{{"controller", controller}, {"subsystem", subsystem}};
    auto answer = co_await call("disconnect", std::move(request), kFabric);
    co_return answer.map(workers::change_from_json);
  }

  std::string autoconnect_rule() override { return nvmetcp::autoconnect_rule(SystemRoot{}); }

 private:
  asio::awaitable<Result<json::object>> call(std::string verb, json::object request, Duration deadline) {
    auto answer = co_await runner_.ask(subject_, std::move(verb), std::move(request), deadline);
    snapshot_.forget();
    co_return answer;
  }

  static constexpr Duration kFabric{45'000};  // one connect: SYN retries, and 10 s for each queue to answer
  static constexpr Duration kRead{20'000};    // some log pages, each answered immediately by a healthy target

  workers::Runner& runner_;
  HostSnapshot& snapshot_;
  std::string subject_;
};

}  // namespace spark::discovery
