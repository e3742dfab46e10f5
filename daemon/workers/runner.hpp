// Runs calls that may hang, or may take long, in workers: processes of their own (process_runner.hpp), or the
// workers of a history.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::workers {

namespace asio = boost::asio;

// What a call shares with others. Worker: it is short, and may run in a worker that has answered others. A
// few such calls run at once, the others wait for their turn; the deadline starts with the turn. Answer:
// also, it is made once for all concurrent calls with the same request; `subject` is that of the first one.
enum class Sharing { Nothing, Worker, Answer };

struct Call {
  std::string verb{};
  std::string subject{};  // for messages: "volume datasets"
  json::object request{};
  std::optional<Duration> deadline{};  // none: until it ends or is cancelled
  Sharing sharing = Sharing::Nothing;
  std::function<void(const json::object&)> on_progress{};
  std::function<void(pid_t)> on_start{};  // the worker's process; it has ended when run() returns
  bool ends_when_asked = false;           // by SIGTERM, and is killed only if it does not end
  int descriptor = -1;  // of the caller, which keeps it open; the worker gets it as kInherited. -1: none

  bool is_short() const { return sharing != Sharing::Nothing; }
};

// Ends a running worker from outside its coroutine. Copies share one worker.
class Cancellation {
 public:
  void cancel() {
    state_->asked = true;
    if (state_->kill) state_->kill();
  }
  bool is_asked() const { return state_->asked; }
  // For the runner: ends the worker that runs now; none before and after.
  void set_kill(std::function<void()> kill) const { state_->kill = std::move(kill); }

 private:
  struct State {
    bool asked = false;
    std::function<void()> kill;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Totals of workers since the daemon started.
struct WorkerCounts {
  std::uint64_t started = 0, timed_out = 0, abandoned = 0;
  std::size_t running = 0;  // now, without abandoned ones
};

class Runner {
 public:
  virtual ~Runner() = default;

  virtual asio::awaitable<Result<json::object>> run(Call call, Cancellation cancellation = {}) = 0;
  asio::awaitable<Result<json::object>> ask(std::string subject, std::string verb, json::object request,
                                            Duration deadline) {
    return run({std::move(verb), std::move(subject), std::move(request), deadline, Sharing::Worker}, {});
  }
  asio::awaitable<Result<json::object>> ask_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline) {
    return run({std::move(verb), std::move(subject), std::move(request), deadline, Sharing::Answer}, {});
  }

  // Abandoned workers that have not ended yet, by subject.
  virtual const std::multiset<std::string>& abandoned() const = 0;
  virtual const WorkerCounts& counts() const = 0;
};

}  // namespace spark::workers
