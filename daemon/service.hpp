// The daemon put together: config, volumes, datasets, API, systemd. Built in main, once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <memory>

#include "base/clock.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/job.hpp"
#include "daemon/datasets/stager.hpp"
#include "daemon/systemd.hpp"
#include "daemon/volumes/volume_set.hpp"
#include "daemon/workers/runner.hpp"

namespace spark {

namespace asio = boost::asio;

struct ServiceOptions {
  std::filesystem::path config_file = config::kDefaultPath;
  std::filesystem::path socket = "/run/spark-stage/api.sock";
  std::filesystem::path state_dir = "/var/lib/spark-stage";
  std::string program;  // what workers are started from
};

class Service {
 public:
  Service(asio::io_context& context, ServiceOptions options, config::Config config, const Clock& clock,
          Notifier& notifier);

  // Listens, starts the volumes, tells systemd. The daemon is ready when it answers, not when its volumes
  // are.
  Result<> start();

 private:
  asio::awaitable<api::Answer> answer(api::Request request);  // handlers.cpp
  asio::awaitable<api::Answer> answer_volume(api::Request request);
  asio::awaitable<api::Answer> answer_dataset(api::Request request);
  api::Answer answer_job(const api::Request& request);
  api::Answer answer_staging(const api::Request& request);
  api::Answer change_volume(const std::string& name, const std::string& verb);
  json::object status_json() const;
  json::object readiness_json() const;

  // reload.cpp
  asio::awaitable<Result<json::object>> reload();
  asio::awaitable<Result<json::object>> plan(json::object request);
  asio::awaitable<void> reload_on_signal();
  Result<datasets::Stager::SourcePlace> find_source(const config::Dataset& dataset) const;
  void volume_changed(const volumes::Volume& volume, volumes::State before);
  void tell_status();
  asio::awaitable<void> obey_signals();
  asio::awaitable<void> feed_watchdog();
  void stop();

  asio::io_context& context_;
  ServiceOptions options_;
  config::Config config_;
  const Clock& clock_;
  Notifier& notifier_;
  SteadyTime started_;
  bool reloading_ = false, reload_again_ = false;  // again: another SIGHUP came meanwhile
  asio::signal_set signals_;
  // Destroyed in reverse: nothing outlives what it refers to.
  workers::Runner runner_;
  datasets::Jobs jobs_;
  volumes::VolumeSet volumes_;
  datasets::Stager stager_;
  std::unique_ptr<api::Server> server_;
};

}  // namespace spark
