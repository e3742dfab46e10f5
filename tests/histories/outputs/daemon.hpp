// The real outputs of a daemon, with the workers of a history.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/jobs.hpp"
#include "daemon/launch.hpp"
#include "daemon/outputs/stage_outs.hpp"
#include "daemon/outputs/watch/output_watches.hpp"
#include "tests/histories/outputs/runner.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

// Its destructor is a SIGKILL: nothing that is in progress ends.
class Daemon {
 public:
  // All outlive it.
  Daemon(Scene& scene, Machine& machine, HistoryRunner::Hooks hooks);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() = default;

  // The configuration as it is now, as after a reload.
  void apply();
  outputs::StageOuts& stage_outs() { return stage_outs_; }
  std::shared_ptr<outputs::WatchedOutput> output() const { return watches_.find(kOutput); }
  // Starts a request, and calls `done` with its answer, unless the daemon is killed before.
  template <class T>
  void ask(asio::awaitable<T> request, std::function<void(T)> done) {
    launch(context_.get_executor(), "request", finish<T>(std::move(request), std::move(done)));
  }

 private:
  template <class T>
  static asio::awaitable<void> finish(asio::awaitable<T> request, std::function<void(T)> done) {
    auto answer = co_await std::move(request);
    done(std::move(answer));
  }

  struct Attached {
    Attached(VirtualTime& its_time, asio::io_context& its_context) : time(its_time), context(its_context) {
      time.attach(context);
    }
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;
    ~Attached() { time.detach(context); }

    VirtualTime& time;
    asio::io_context& context;
  };

  Scene& scene_;
  Machine& machine_;
  asio::io_context context_;  // its destructor destroys what is in progress
  Attached attached_;
  config::Config config_;
  HistoryRunner runner_;
  Jobs jobs_;
  outputs::StageOuts stage_outs_;
  outputs::OutputWatches watches_;
};

}  // namespace spark::histories
