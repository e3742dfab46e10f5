#include "daemon/discovery/worker_actions.hpp"

#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"
#include "nvmetcp/discovery/autoconnect.hpp"

namespace spark::discovery {
namespace {

constexpr Duration kFabric{45'000};  // one connect: SYN retries, and 10 s for each queue to answer
constexpr Duration kRead{20'000};    // some log pages, each answered immediately by a healthy target

}  // namespace

asio::awaitable<Result<json::object>> WorkerActions::call(std::string verb, json::object request,
                                                          Duration deadline) {
  auto answer = co_await runner_.ask(subject_, std::move(verb), std::move(request), deadline);
  snapshot_.forget();
  co_return answer;
}

asio::awaitable<Result<nvmetcp::Connection>> WorkerActions::watch(nvmetcp::Portal portal,
                                                                  std::string interface) {
  json::object request{{"portal", to_message(portal)}, {"interface", interface}};
  auto answer = co_await call("watch-discovery", std::move(request), kFabric);
  co_return workers::message_of<nvmetcp::Connection>(std::move(answer));
}

asio::awaitable<Result<nvmetcp::DiscoveryLog>> WorkerActions::read(std::string controller) {
  json::object request{{"controller", controller}};
  auto answer = co_await call("read-discovery", std::move(request), kRead);
  co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
}

asio::awaitable<Result<nvmetcp::DiscoveryLog>> WorkerActions::ask(nvmetcp::Portal portal,
                                                                  std::string interface) {
  json::object request{{"portal", to_message(portal)}, {"interface", interface}};
  // Volumes of the target may make the same call.
  auto answer = co_await runner_.ask_jointly(subject_, "discover", std::move(request), kFabric);
  snapshot_.forget();
  co_return workers::message_of<nvmetcp::DiscoveryLog>(std::move(answer));
}

asio::awaitable<Result<Change>> WorkerActions::disconnect(std::string controller, std::string subsystem) {
  json::object request{{"controller", controller}, {"subsystem", subsystem}};
  auto answer = co_await call("disconnect", std::move(request), kFabric);
  co_return answer.map(workers::change_from_json);
}

std::string WorkerActions::autoconnect_rule() {
  return nvmetcp::autoconnect_rule(SystemRoot{});
}

}  // namespace spark::discovery
