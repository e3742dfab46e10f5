// The workers of one simulated daemon: each verb's real code runs at one moment of virtual time, and its
// answer arrives somewhat later.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "daemon/timer.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::histories {

using Answer = Result<json::object>;

class HistoryRunner final : public workers::Runner {
 public:
  struct Hooks {
    std::function<Answer(const workers::Call&)> perform;
    std::function<bool(const workers::Call&)> hangs;  // while it does, the worker waits
  };
  HistoryRunner(asio::any_io_executor executor, std::uint64_t seed, Hooks hooks)
      : executor_(std::move(executor)), random_(seed), hooks_(std::move(hooks)) {}

  asio::awaitable<Answer> run(workers::Call call, workers::Cancellation cancellation = {}) override;
  const std::multiset<std::string>& abandoned() const override { return abandoned_; }
  const workers::WorkerCounts& counts() const override { return counts_; }

 private:
  struct Running {
    explicit Running(const asio::any_io_executor& executor) : timer(executor) {}

    Timer timer;
    bool is_cancelled = false, is_late = false;
    std::optional<SteadyTime> deadline;
  };
  using RunningPtr = std::shared_ptr<Running>;

  Duration between(unsigned least_ms, unsigned most_ms);
  // False if it was cancelled, or its deadline has passed.
  asio::awaitable<bool> pause(RunningPtr running, Duration duration);

  asio::any_io_executor executor_;
  std::mt19937_64 random_;
  Hooks hooks_;
  std::multiset<std::string> abandoned_;
  workers::WorkerCounts counts_;
};

}  // namespace spark::histories
