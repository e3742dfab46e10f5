#include "daemon/fleet/peer_service.hpp"

#include <signal.h>

#include "daemon/backoff.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::fleet {
namespace {

namespace asio = boost::asio;

constexpr Duration kFirstRetry{1000}, kLongestRetry{30'000}, kLookAtLeases{1000};

}  // namespace

PeerService::PeerService(asio::any_io_executor executor, workers::Runner& runner, std::string state_dir,
                         std::function<bool()> is_leased)
    : executor_(std::move(executor)),
      runner_(runner),
      state_dir_(std::move(state_dir)),
      is_leased_(std::move(is_leased)) {}

void PeerService::apply(const config::Config& config) {
  json::object wanted;
  if (config.fleet.listen) {
    wanted["cache"] = workers::to_json(config.cache, state_dir_);
    wanted["fleet"] = workers::to_json(config.fleet);
  }
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  ++turn_;
  cancellation_.cancel();
  last_.clear();
  error_.reset();
  if (wanted_.empty()) return;
  launch(executor_, "peers", run(turn_, wanted_));
  launch(executor_, "leases that peers respect", tell_leases(turn_));
}

asio::awaitable<void> PeerService::run(std::uint64_t turn, json::object request) {
  Backoff backoff(kFirstRetry, kLongestRetry);
  asio::steady_timer pause(executor_);
  while (turn == turn_) {
    workers::Call call;
    call.verb = "serve-peers";
    call.subject = "the fleet";
    call.request = request;
    call.on_start = [this](pid_t pid) {
      worker_ = pid;
      is_limited_ = false;
    };
    call.on_progress = [this, &backoff](const json::object& report) {
      last_ = report;
      error_.reset();
      backoff.reset();
    };
    cancellation_ = {};
    const workers::Cancellation cancellation = cancellation_;
    const auto ended = co_await runner_.run(std::move(call), cancellation);
    if (turn != turn_) co_return;
    worker_ = 0;
    last_.clear();
    if (!ended && (!error_ || error_->what != ended.error().what))
      log::warning("peers are not served: " + ended.error().message() + "; trying again");
    if (!ended) error_ = ended.error();
    pause.expires_after(backoff.next());
    const auto [stopped] = co_await pause.async_wait(kToken);
    if (stopped) co_return;
  }
}

asio::awaitable<void> PeerService::tell_leases(std::uint64_t turn) {
  asio::steady_timer pause(executor_);
  while (turn == turn_) {
    // Once it has reported, it knows the signals.
    const bool is_leased = is_leased_();
    if (worker_ != 0 && !last_.empty() && is_leased != is_limited_) {
      ::kill(worker_, is_leased ? SIGUSR1 : SIGUSR2);
      is_limited_ = is_leased;
    }
    pause.expires_after(kLookAtLeases);
    const auto [stopped] = co_await pause.async_wait(kToken);
    if (stopped) co_return;
  }
}

json::value PeerService::status() const {
  if (wanted_.empty()) return nullptr;
  json::object status = last_;
  if (last_.empty()) {
    const json::object& listen = *get_object(*get_object(wanted_, "fleet"), "listen");
    status["listen"] = get_string(listen, "address").value_or("") + ":" +
                       std::to_string(get_int(listen, "port").value_or(0));
    status["peers"] = json::array{};
  }
  status["serving"] = !last_.empty();
  status["reason"] = error_ ? json::value(error_->message()) : json::value(nullptr);
  return status;
}

}  // namespace spark::fleet
