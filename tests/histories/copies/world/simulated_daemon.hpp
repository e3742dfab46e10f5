// The daemon of the host: the real datasets and jobs, in virtual time. It can be killed at any moment.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "daemon/datasets/datasets.hpp"
#include "daemon/jobs.hpp"
#include "tests/histories/copies/host/process.hpp"
#include "tests/histories/copies/world/scene.hpp"

namespace spark::histories::copies {

class SimulatedDaemon {
 public:
  explicit SimulatedDaemon(Scene& scene);
  ~SimulatedDaemon();  // as by SIGKILL: its workers die with it
  SimulatedDaemon(const SimulatedDaemon&) = delete;
  SimulatedDaemon& operator=(const SimulatedDaemon&) = delete;

  datasets::Datasets& datasets() { return *datasets_; }
  Jobs& jobs() { return jobs_; }
  // Of a command without the daemon, as `spark-stage copy`.
  HistoryRunner& runner() { return runner_; }
  boost::asio::io_context& context() { return *context_; }
  bool is_idle() const { return runner_.counts().running == 0; }

 private:
  Result<datasets::SourcePlace> find_source(const config::Dataset& dataset);

  Scene& scene_;
  Process process_;
  // Before all that has timers of it. Its coroutines end last, and use nothing of the rest then.
  std::unique_ptr<boost::asio::io_context> context_;
  HistoryRunner runner_;
  Jobs jobs_;
  std::optional<datasets::Datasets> datasets_;
};

}  // namespace spark::histories::copies
