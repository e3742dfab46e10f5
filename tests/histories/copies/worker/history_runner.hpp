// The daemon's workers in a history: real processes that take virtual time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/timer.hpp"
#include "daemon/workers/runner.hpp"
#include "tests/histories/copies/worker/worker.hpp"
#include "tests/histories/engine/virtual_time.hpp"

namespace spark::histories::copies {

// The next worker with this verb has the fault.
struct PlannedFault {
  std::string verb;
  Fault fault;
};

// What the history decides about the daemon's workers.
struct Fate {
  std::mt19937_64 dice;               // of the current step
  std::vector<PlannedFault> planned;  // the first that fits a worker is its
  std::uint64_t faulty = 0;           // workers that had one, so far
  std::uint64_t faulty_leases = 0;    // those for leases, and troubles with the catalog
  SteadyTime last_fault{};            // when the last one of them worked
  SteadyTime state_held_until{};      // one of them was held up by the drive of the state folder
  std::function<void(const std::string& verb, const std::string& what)> tell;
  std::function<void(const std::string& verb)> hangs;
  std::function<void(const std::string& verb, const std::string& how)> crashed;

  Duration below(Duration longest) {
    return Duration(static_cast<Duration::rep>(dice() % static_cast<std::uint64_t>(longest.count() + 1)));
  }
};

class HistoryRunner final : public workers::Runner {
 public:
  HistoryRunner(asio::any_io_executor executor, const VirtualTime& time, Fate& fate)
      : executor_(std::move(executor)), time_(time), fate_(fate) {}

  asio::awaitable<Result<json::object>> run(workers::Call call, workers::Cancellation cancellation) override;

  const std::multiset<std::string>& abandoned() const override { return abandoned_; }
  const workers::WorkerCounts& counts() const override { return counts_; }

 private:
  struct Running;
  using RunningPtr = std::shared_ptr<Running>;
  asio::awaitable<Result<json::object>> converse(RunningPtr running);
  asio::awaitable<void> wait(RunningPtr running, Duration time);
  Fault take_fault(const std::string& verb);

  asio::any_io_executor executor_;
  const VirtualTime& time_;
  Fate& fate_;
  std::multiset<std::string> abandoned_;
  workers::WorkerCounts counts_;
};

// For the processes: the virtual time as the system's.
void show_time(const VirtualTime& time);

}  // namespace spark::histories::copies
