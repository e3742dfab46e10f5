#include "daemon/memory/memory_watch.hpp"

#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::memory {
namespace {

namespace asio = boost::asio;

constexpr Duration kLongestRetry{60'000};
constexpr char kSubject[] = "the memory of the copies";

}  // namespace

MemoryWatch::MemoryWatch(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs,
                         std::string state_dir)
    : executor_(executor),
      jobs_(jobs),
      state_dir_(std::move(state_dir)),
      watch_(executor, runner,
             {"watch-memory", kSubject, "the memory of the copies is not watched", kLongestRetry}),
      turns_(std::move(executor), runner) {}

void MemoryWatch::apply(const config::Config& config) {
  watch_.apply({{"cache", workers::to_json(config.cache, state_dir_)},
                {"page_cache", config::to_string(config.cache.page_cache)}});
}

json::value MemoryWatch::status() const {
  return watch_.last().empty() ? json::value(nullptr) : json::value(watch_.last());
}

std::shared_ptr<Job> MemoryWatch::drop(std::vector<std::string> datasets, Asker asker) {
  json::object request{{"cache", watch_.request().at("cache")}, {"datasets", json::value_from(datasets)}};
  auto job = jobs_.create({"drop", std::move(datasets), std::move(asker)});
  workers::Cancellation cancellation;
  turns_.make_cancellable(*job, cancellation);
  launch(executor_, "drop", run_drop(job, std::move(request), cancellation));
  return job;
}

asio::awaitable<void> MemoryWatch::run_drop(std::shared_ptr<Job> job, json::object request,
                                            workers::Cancellation cancellation) {
  workers::Call call{"drop-memory", kSubject, std::move(request)};
  auto dropped = co_await turns_.run(job, std::move(call), cancellation);
  job->finish(std::move(dropped));
}

}  // namespace spark::memory
