#include "daemon/volumes/adapters/worker_fabric.hpp"

#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::volumes {
namespace {

// Each is longer than the kernel's own timeout for that call on a healthy host; beyond it, something hangs.
constexpr Duration kFabric{
    45'000};  // one connect: SYN retries, and 10 s for each of up to 8 queues to answer
constexpr Duration kResolve{20'000};  // an unreachable name service, queried two or three times
constexpr Duration kTimers{10'000};   // up to three sysfs attributes
constexpr Duration kSmart{10'000};

}  // namespace

asio::awaitable<Result<nvmetcp::DiscoveryLog>> WorkerFabric::discover(nvmetcp::Portal portal,
                                                                      std::string interface) {
  json::object request{{"portal", to_message(portal)}, {"interface", interface}};
  // Volumes of one target share the call, and its log concerns none of them in particular.
  std::string target = "target " + to_string(portal);
  auto answer = co_await asker_.act_jointly(std::move(target), "discover", std::move(request), kFabric);
  co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
}

asio::awaitable<Result<nvmetcp::Connection>> WorkerFabric::connect(std::string subsystem,
                                                                   nvmetcp::Portal portal,
                                                                   nvmetcp::ConnectOptions options) {
  json::object request{
      {"subsystem", subsystem}, {"portal", to_message(portal)}, {"options", to_message(options)}};
  // Volumes of one subsystem share its connection: the first creates it, the others find it. A portal that
  // hangs does not concern a volume with another working path.
  std::string target = "target " + to_string(portal);
  auto answer = co_await asker_.act_jointly(std::move(target), "connect", std::move(request), kFabric);
  co_return workers::message_of<nvmetcp::Connection>(std::move(answer));
}

asio::awaitable<Result<std::vector<nvmetcp::Portal>>> WorkerFabric::resolve(nvmetcp::Portal portal) {
  json::object request{{"portal", to_message(portal)}};
  std::string target = "target " + to_string(portal);
  const auto answer =
      co_await asker_.runner().ask_jointly(std::move(target), "resolve", std::move(request), kResolve);
  if (!answer) co_return fail(answer.error());
  std::vector<nvmetcp::Portal> numeric;
  for (const std::string& address : get_strings(*answer, "addresses"))
    numeric.push_back({address, portal.port});
  co_return numeric;
}

asio::awaitable<Result<>> WorkerFabric::set_timers(std::string controller, std::string subsystem,
                                                   nvmetcp::ConnectOptions options) {
  json::object request{
      {"controller", controller}, {"subsystem", subsystem}, {"options", to_message(options)}};
  const auto answer = co_await asker_.act("timers", std::move(request), kTimers);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

asio::awaitable<Result<>> WorkerFabric::rescan(std::string controller, std::string subsystem) {
  json::object request{{"controller", controller}, {"subsystem", subsystem}};
  const auto answer = co_await asker_.act("rescan", std::move(request), kTimers);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

asio::awaitable<Result<Change>> WorkerFabric::disconnect(std::string controller, std::string subsystem,
                                                         nvmetcp::CutOff cut_off,
                                                         std::vector<std::string> leaving) {
  json::object request{{"controller", controller},
                       {"subsystem", subsystem},
                       {"leaving", json::array(leaving.begin(), leaving.end())},
                       {"cut_off", to_message(cut_off)}};
  auto answer = co_await asker_.act("disconnect", std::move(request), kFabric);
  co_return answer.map(workers::change_from_json);
}

asio::awaitable<Result<nvmetcp::Smart>> WorkerFabric::smart(std::string controller) {
  json::object request{{"controller", controller}};
  auto answer = co_await asker_.ask("smart", std::move(request), kSmart);
  co_return workers::message_of<nvmetcp::Smart>(std::move(answer));
}

}  // namespace spark::volumes
