#include "daemon/fleet/peer_service.hpp"

#include "daemon/backoff.hpp"
#include "daemon/fleet/compare.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::fleet {
namespace {

namespace asio = boost::asio;

constexpr Duration kFirstRetry{1000}, kLongestRetry{30'000}, kAsking{30'000};
constexpr std::size_t kMostTold = 64;  // any program can connect
constexpr Duration kReplacement{100};  // pause before a process that ended in order, to use another key

}  // namespace

PeerService::PeerService(asio::any_io_executor executor, workers::Runner& runner, std::string state_dir)
    : executor_(std::move(executor)), runner_(runner), state_dir_(std::move(state_dir)) {}

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
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  ++turn_;
  cancellation_.cancel();
  last_.clear();
  told_.clear();
  error_.reset();
  if (wanted_.empty()) return;
  launch(executor_, "peers", run(turn_, wanted_));
}

asio::awaitable<void> PeerService::run(std::uint64_t turn, json::object request) {
  Backoff backoff(kFirstRetry, kLongestRetry);
  Timer pause(executor_);
  while (turn == turn_) {
    workers::Call call;
    call.verb = "serve-peers";
    call.subject = "the fleet";
    call.request = request;
    call.on_progress = [this, &backoff](const json::object& report) {
      last_ = report;
      log_refused();
      error_.reset();
      backoff.reset();
    };
    cancellation_ = {};
    const workers::Cancellation cancellation = cancellation_;
    const auto ended = co_await runner_.run(std::move(call), cancellation);
    if (turn != turn_) co_return;
    last_.clear();
    if (!ended && (!error_ || error_->what != ended.error().what))
      log::warning("peers are not served: " + ended.error().message() + "; trying again");
    if (!ended) error_ = ended.error();
    pause.expires_after(ended ? kReplacement : backoff.next());
    if (!co_await pause.wait()) co_return;
  }
}

// Once for each host and reason.
void PeerService::log_refused() {
  const json::array* hosts = get_array(last_, "refused_hosts");
  for (std::size_t i = 0; hosts != nullptr && i < hosts->size(); ++i) {
    const json::object* host = (*hosts)[i].if_object();
    if (host == nullptr || told_.size() >= kMostTold) return;
    const std::string sentence = "the fleet refused " + get_string(*host, "address").value_or("a host") +
                                 ": " + get_string(*host, "reason").value_or("");
    if (told_.insert(sentence).second) log::warning(sentence);
  }
}

asio::awaitable<Result<json::object>> PeerService::compare(json::array own) {
  if (wanted_.empty())
    co_return fail(Errc::Invalid, "there is no fleet in the configuration",
                   "docs/fleet.md says how to add one");
  workers::Call call;
  call.verb = "ask-peers";
  call.subject = "the fleet";
  call.request = wanted_;
  call.deadline = kAsking;
  const auto asked = co_await runner_.run(std::move(call));
  if (!asked) co_return fail(asked.error());
  const json::array* peers = get_array(*asked, "peers");
  co_return compare_datasets(own, peers == nullptr ? json::array{} : *peers);
}

json::value PeerService::status() const {
  if (wanted_.empty()) return nullptr;
  json::object status = last_;
  if (last_.empty()) {
    status["listen"] = listen_;
    status["peers"] = json::array{};
  }
  status["serving"] = !last_.empty();
  const auto trouble = get_string(last_, "reason");
  status["reason"] = error_          ? json::value(error_->message())
                     : trouble       ? json::value(*trouble)
                     : last_.empty() ? json::value("the process that serves peers is starting")
                                     : json::value(nullptr);
  return status;
}

}  // namespace spark::fleet
