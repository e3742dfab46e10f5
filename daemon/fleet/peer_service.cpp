#include "daemon/fleet/peer_service.hpp"

#include "daemon/fleet/compare.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::fleet {
namespace {

namespace asio = boost::asio;

constexpr Duration kLongestRetry{30'000}, kAsking{30'000};
constexpr std::size_t kMostTold = 64;  // any program can connect

}  // namespace

PeerService::PeerService(asio::any_io_executor executor, workers::Runner& runner, std::string state_dir)
    : runner_(runner),
      state_dir_(std::move(state_dir)),
      asks_(executor, kAsking),
      server_(
          std::move(executor), runner,
          {"serve-peers", "the fleet", "peers are not served", kLongestRetry, [this] { log_refused(); }}) {}

void PeerService::apply(const config::Config& config) {
  json::object wanted;
  if (!config.fleet.listen.empty()) {
    wanted["cache"] = workers::to_json(config.cache, state_dir_);
    wanted["fleet"] = workers::to_json(config.fleet);
    listen_.clear();
    for (const nvmetcp::Portal& address : config.fleet.listen)
      listen_ += (listen_.empty() ? "" : ", ") + to_string(address);
    json::array folders;
    for (const auto& [name, dataset] : config.datasets)
      if (dataset.peers && dataset.volume.empty()) folders.emplace_back(name);
    wanted["folders"] = std::move(folders);
  }
  if (server_.apply(std::move(wanted))) told_.clear();
}

// Once for each host and reason.
void PeerService::log_refused() {
  const json::array* hosts = get_array(server_.last(), "refused_hosts");
  for (std::size_t i = 0; hosts != nullptr && i < hosts->size(); ++i) {
    const json::object* host = (*hosts)[i].if_object();
    if (host == nullptr || told_.size() >= kMostTold) return;
    const std::string sentence = "the fleet refused " + get_string(*host, "address").value_or("a host") +
                                 ": " + get_string(*host, "reason").value_or("");
    if (told_.insert(sentence).second) log::warning(sentence);
  }
}

asio::awaitable<Result<json::object>> PeerService::ask_peers() {
  workers::Call call;
  call.verb = "ask-peers";
  call.subject = "the fleet";
  call.request = server_.request();
  call.deadline = kAsking;
  auto asked = co_await runner_.run(std::move(call));
  co_return asked;
}

asio::awaitable<Result<json::object>> PeerService::compare(json::array own) {
  if (server_.request().empty())
    co_return fail(Errc::Invalid, "there is no fleet in the configuration",
                   "docs/fleet.md says how to add one");
  workers::Joined::Ask ask = [this] { return ask_peers(); };
  const auto asked = co_await asks_.answer("peers", std::move(ask));
  if (!asked) co_return fail(asked.error());
  const json::array* peers = get_array(*asked, "peers");
  co_return compare_datasets(own, peers == nullptr ? json::array{} : *peers);
}

json::value PeerService::status() const {
  if (server_.request().empty()) return nullptr;
  const json::object& last = server_.last();
  const auto& error = server_.error();
  json::object status = last;
  if (last.empty()) {
    status["listen"] = listen_;
    status["peers"] = json::array{};
  }
  status["serving"] = !last.empty();
  const auto trouble = get_string(last, "reason");
  status["reason"] = error          ? json::value(error->message())
                     : trouble      ? json::value(*trouble)
                     : last.empty() ? json::value("the process that serves peers is starting")
                                    : json::value(nullptr);
  return status;
}

}  // namespace spark::fleet
