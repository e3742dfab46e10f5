#include "daemon/memory/memory_watch.hpp"

#include "daemon/backoff.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::memory {
namespace {

namespace asio = boost::asio;

constexpr Duration kFirstRetry{1000}, kLongestRetry{60'000};

}  // namespace

MemoryWatch::MemoryWatch(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs,
                         std::string state_dir)
    : executor_(std::move(executor)), runner_(runner), jobs_(jobs), state_dir_(std::move(state_dir)) {}

void MemoryWatch::apply(const config::Config& config) {
  json::object wanted{{"cache", workers::to_json(config.cache, state_dir_)},
                      {"page_cache", config::to_string(config.cache.page_cache)}};
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  ++turn_;
  cancellation_.cancel();
  last_.clear();
  launch(executor_, "memory of the copies", run(turn_, wanted_));
}

asio::awaitable<void> MemoryWatch::run(std::uint64_t turn, json::object request) {
  Backoff backoff(kFirstRetry, kLongestRetry);
  Timer pause(executor_);
  while (turn == turn_) {
    workers::Call call;
    call.verb = "watch-memory";
    call.subject = "the memory of the copies";
    call.request = request;
    call.on_progress = [this, &backoff](const json::object& report) {
      last_ = report;
      error_.clear();
      backoff.reset();
    };
    cancellation_ = {};
    const workers::Cancellation cancellation = cancellation_;
    const auto ended = co_await runner_.run(std::move(call), cancellation);
    if (turn != turn_) co_return;
    last_.clear();
    if (!ended && error_ != ended.error().what)
      log::warning("the memory of the copies is not watched: " + ended.error().message() + "; trying again");
    if (!ended) error_ = ended.error().what;
    pause.expires_after(backoff.next());
    if (!co_await pause.wait()) co_return;
  }
}

json::value MemoryWatch::status() const {
  return last_.empty() ? json::value(nullptr) : json::value(last_);
}

std::shared_ptr<Job> MemoryWatch::drop(std::vector<std::string> datasets, Asker asker) {
  json::object request{{"cache", wanted_.at("cache")}, {"datasets", json::value_from(datasets)}};
  auto job = jobs_.create({"drop", std::move(datasets), std::move(asker)});
  workers::Cancellation cancellation;
  job->on_cancel = [cancellation]() mutable { cancellation.cancel(); };
  launch(executor_, "drop", run_drop(job, std::move(request), cancellation));
  return job;
}

asio::awaitable<void> MemoryWatch::run_drop(std::shared_ptr<Job> job, json::object request,
                                            workers::Cancellation cancellation) {
  workers::Call call;
  call.verb = "drop-memory";
  call.subject = "the memory of the copies";
  call.request = std::move(request);
  auto dropped = co_await runner_.run(std::move(call), cancellation);
  job->finish(std::move(dropped));
}

}  // namespace spark::memory
