#include "daemon/workers/supervisor.hpp"

#include <utility>

#include "daemon/backoff.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"

namespace spark::workers {
namespace {

constexpr Duration kFirstRetry{1000};
// Pause after a worker that ended in order, for example to use another key.
constexpr Duration kReplacement{100};

}  // namespace

Supervisor::Supervisor(asio::any_io_executor executor, Runner& runner, Work work)
    : executor_(std::move(executor)), runner_(runner), work_(std::move(work)) {}

bool Supervisor::apply(json::object request) {
  if (request == request_) return false;
  request_ = std::move(request);
  ++turn_;
  cancellation_.cancel();
  last_.clear();
  error_.reset();
  if (!request_.empty()) launch(executor_, work_.subject, run(turn_, request_));
  return true;
}

asio::awaitable<void> Supervisor::run(std::uint64_t turn, json::object request) {
  Backoff backoff(kFirstRetry, work_.longest_retry);
  Timer pause(executor_);
  while (turn == turn_) {
    Call call;
    call.verb = work_.verb;
    call.subject = work_.subject;
    call.request = request;
    call.ends_when_asked = true;
    call.on_progress = [this, turn, &backoff](const json::object& report) {
      if (turn != turn_) return;  // of a worker that is being ended for another request
      last_ = report;
      error_.reset();
      backoff.reset();
      if (work_.on_report) work_.on_report();
    };
    cancellation_ = {};
    const Cancellation cancellation = cancellation_;
    const auto ended = co_await runner_.run(std::move(call), cancellation);
    if (turn != turn_) co_return;
    last_.clear();
    if (!ended && (!error_ || error_->what != ended.error().what))
      log::warning(work_.trouble + ": " + ended.error().message() + "; trying again");
    if (!ended) error_ = ended.error();
    pause.expires_after(ended ? kReplacement : backoff.next());
    if (!co_await pause.wait()) co_return;
  }
}

}  // namespace spark::workers
