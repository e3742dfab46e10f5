#include "tests/histories/outputs/daemon.hpp"

namespace spark::histories {
namespace {

outputs::Context context_of(Scene& scene, Machine& machine, const config::Config& config,
                            asio::any_io_executor executor, HistoryRunner& runner) {
  return {std::move(executor),
          runner,
          machine,
          machine.disk / "state",
          [&config]() -> const config::Config& { return config; },
          [&scene, host = machine.index](const std::string&) { return scene.volume.writable_by(host); },
          [&scene, host = machine.index](const std::string&) { return scene.volume.readable_by(host); },
          [] { return false; },
          [](const std::string&, const std::string&) { return std::vector<std::string>(); }};
}

}  // namespace

Daemon::Daemon(Scene& scene, Machine& machine, HistoryRunner::Hooks hooks)
    : scene_(scene),
      machine_(machine),
      attached_(scene.time, context_),
      runner_(context_.get_executor(), scene.seed * 1000 + machine.index * 100 + machine.starts,
              std::move(hooks)),
      jobs_(context_.get_executor(), machine),
      stage_outs_(context_of(scene, machine, config_, context_.get_executor(), runner_), jobs_),
      watches_(stage_outs_.context(), stage_outs_) {
  // One thread and one request at a time, so that the order of a worker's calls is always the same.
  config_.cache.engine.threads = 1;
  config_.cache.engine.depth = 1;
  ++machine.starts;
  machine.started = scene.now();
  launch(context_.get_executor(), "stage-outs", stage_outs_.start());
  apply();
}

void Daemon::apply() {
  config::Output settings = scene_.settings;
  settings.path = machine_.job_folder();
  config_.outputs = {{settings.name, settings}};
  watches_.apply(config_);
}

}  // namespace spark::histories
