#include "daemon/metrics/port.hpp"

#include "daemon/log.hpp"

namespace spark::metrics {
namespace {

// A scrape is a request line and some headers. All local programs have one address, so none is held up by the
// requests of others: the page is made once a second.
constexpr api::Limits kLimits{.body = 1024,
                              .header = 8 << 10,
                              .connections = 64,
                              .user_connections = 64,
                              .replaces_oldest = true,
                              .user_requests_per_second = 10'000,
                              .user_answers = 1 << 30,
                              .answer_per_request = 1 << 30,
                              .slowest = std::chrono::seconds(10)};

constexpr Duration kNewPage{1000};

}  // namespace

Port::Port(boost::asio::any_io_executor executor, std::function<std::string()> text, Duration retry)
    : executor_(executor), text_(std::move(text)), pause_(retry), retry_(executor) {}

void Port::apply(const config::MetricsSettings& settings) {
  if (settings == wanted_) return;
  stop();
  wanted_ = settings;
  complained_ = false;
  if (wanted_.listen) open();
}

void Port::stop() {
  retry_.cancel();
  if (server_) server_->stop();
  server_.reset();
}

void Port::open() {
  auto server = api::Server::listen_on_address(
      executor_, wanted_.listen->address, wanted_.listen->port,
      [this](api::Request request) { return answer(std::move(request)); }, kLimits);
  if (server) {
    server_ = std::move(*server);
    server_->start();
    log::info("/metrics for everybody on " + wanted_.listen->address + " port " +
              std::to_string(wanted_.listen->port));
    return;
  }
  if (!complained_) log::warning("/metrics: " + server.error().message() + "; trying again");
  complained_ = true;
  retry_.expires_after(pause_);
  retry_.then([this] {
    if (wanted_.listen && !server_) open();
  });
}

const std::string& Port::page() {
  const SteadyTime now = steady_now(executor_);
  if (!made_at_ || now - *made_at_ >= kNewPage) {
    page_ = text_();
    made_at_ = now;
  }
  return page_;
}

boost::asio::awaitable<api::Answer> Port::answer(api::Request request) {
  api::Answer answer;
  if (request.method == "GET" && request.path == std::vector<std::string>{"metrics"}) {
    answer.metrics = page();
  } else {
    answer = api::error_answer({Errc::NotFound, "only GET /metrics is answered here", ""});
  }
  co_return answer;
}

}  // namespace spark::metrics
