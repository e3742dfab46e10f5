// The fabric, accessed by workers.
#pragma once

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/fabric.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::volumes {

class WorkerFabric final : public Fabric {
 public:
  explicit WorkerFabric(Asker& asker) : asker_(asker) {}

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                          std::string interface) override {
    json::object request{{"portal", to_message(portal)}, {"interface", interface}};
    // Volumes of one target share the call, and its log concerns none of them in particular.
    std::string target = "target " + to_string(portal);
    auto answer = co_await asker_.act_jointly(std::move(target), "discover", std::move(request), kFabric);
    co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
  }

  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override {
    json::object request{
        {"subsystem", subsystem}, {"portal", to_message(portal)}, {"options", to_message(options)}};
    // Volumes of one subsystem share its connection: the first creates it, the others find it. A portal that
    // hangs does not concern a volume with another working path.
    std::string target = "target " + to_string(portal);
    auto answer = co_await asker_.act_jointly(std::move(target), "connect", std::move(request), kFabric);
    co_return workers::message_of<nvmetcp::Connection>(std::move(answer));
  }

  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override {
    json::object request{{"portal", to_message(portal)}};
    std::string target = "target " + to_string(portal);
    const auto answer =
        co_await asker_.runner().ask_jointly(std::move(target), "resolve", std::move(request), kResolve);
    if (!answer) co_return fail(answer.error());
    std::vector<nvmetcp::Portal> numeric;
    for (std::string& address : get_strings(*answer, "addresses"))
      numeric.push_back({std::move(address), portal.port});
    co_return numeric;
  }

  asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                       nvmetcp::ConnectOptions options) override {
    json::object request{
        {"controller", controller}, {"subsystem", subsystem}, {"options", to_message(options)}};
    const auto answer = co_await asker_.act("timers", std::move(request), kTimers);
    co_return success_of(answer);
  }

  asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) override {
    json::object request{{"controller", controller}, {"subsystem", subsystem}};
    const auto answer = co_await asker_.act("rescan", std::move(request), kTimers);
    co_return success_of(answer);
  }

  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                             nvmetcp::CutOff cut_off,
                                             std::vector<std::string> leaving) override {
    json::object request{{"controller", controller},
                         {"subsystem", subsystem},
                         {"leaving", json::array(leaving.begin(), leaving.end())},
                         {"cut_off", to_message(cut_off)}};
    auto answer = co_await asker_.act("disconnect", std::move(request), kFabric);
    co_return answer.map(workers::change_from_json);
  }

  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override {
    json::object request{{"controller", controller}};
    auto answer = co_await asker_.ask("smart", std::move(request), kSmart);
    co_return workers::message_of<nvmetcp::Smart>(std::move(answer));
  }

 private:
  // Each is longer than the kernel's own timeout for that call on a healthy host; beyond it, something hangs.
  static constexpr Duration kFabric{45'000};  // one connect: SYN retries, and 10 s for each of up to 8 queues
  static constexpr Duration kResolve{20'000};  // an unreachable name service, queried two or three times
  static constexpr Duration kTimers{10'000};   // up to three sysfs attributes
  static constexpr Duration kSmart{10'000};

  Asker& asker_;
};

}  // namespace spark::volumes
