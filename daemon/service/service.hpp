// The daemon put together: config, volumes, datasets, API, systemd. Built in main, once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "daemon/api/server.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/datasets.hpp"
#include "daemon/discovery/watch_set.hpp"
#include "daemon/jobs.hpp"
#include "daemon/metrics/port.hpp"
#include "daemon/sight.hpp"
#include "daemon/systemd.hpp"
#include "daemon/uevents.hpp"
#include "daemon/volumes/volume/volume_set.hpp"
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
  // routes.cpp: every request with what answers it
  struct Endpoint;
  static std::span<const Endpoint> endpoints();
  asio::awaitable<api::Answer> answer(api::Request request);

  // handlers.cpp
  api::Answer get_health(const api::Request& request);
  api::Answer get_readiness(const api::Request& request);
  api::Answer get_metrics(const api::Request& request);
  api::Answer get_status(const api::Request& request);
  api::Answer get_config(const api::Request& request);
  asio::awaitable<api::Answer> post_reload(api::Request request);
  asio::awaitable<api::Answer> post_plan(api::Request request);
  api::Answer get_datasets(const api::Request& request);
  api::Answer post_staging(const api::Request& request);
  std::optional<api::Answer> refuse_job(const api::Request& request) const;
  api::Answer post_verify(const api::Request& request);
  api::Answer post_evict(const api::Request& request);
  api::Answer post_scrub(const api::Request& request);
  api::Answer delete_lease(const api::Request& request);
  api::Answer get_jobs(const api::Request& request);
  api::Answer get_job(const api::Request& request);
  api::Answer get_job_events(const api::Request& request);
  api::Answer delete_job(const api::Request& request);
  Result<std::shared_ptr<Job>> find_job(const api::Request& request) const;

  // volume_requests.cpp
  api::Answer post_up(const api::Request& request);
  api::Answer post_down(const api::Request& request);
  api::Answer post_take(const api::Request& request);
  api::Answer post_publish(const api::Request& request);
  using VolumeWork =
      std::function<asio::awaitable<void>(std::shared_ptr<Job> job, std::shared_ptr<volumes::Volume> volume)>;
  api::Answer ask_volume(const api::Request& request, const VolumeWork& work);

  json::object status_json() const;
  json::object readiness_json() const;
  std::string metrics_text() const;  // metrics_page.cpp

  // reload.cpp
  asio::awaitable<Result<json::object>> reload();
  asio::awaitable<Result<json::object>> plan(json::object request);
  asio::awaitable<void> reload_on_signal();
  Result<datasets::SourcePlace> find_source(const config::Dataset& dataset);
  void volume_changed(const volumes::Volume& volume, volumes::State before);
  void offer_changed(const discovery::TargetWatch& watch, const std::set<std::string>& before);
  void device_changed(const Uevent& event);
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
  WallTime config_loaded_;
  bool last_reload_worked_ = true;
  bool reloading_ = false, reload_again_ = false;  // again: another SIGHUP came meanwhile
  asio::signal_set signals_;
  // Destroyed in reverse: nothing outlives what it refers to.
  workers::Runner runner_;
  workers::Turnstile plans_;  // one at a time: each may keep a processor busy
  Jobs jobs_;
  Sight sight_;
  volumes::VolumeSet volumes_;
  discovery::WatchSet watches_;
  Uevents uevents_;
  datasets::Datasets datasets_;
  std::shared_ptr<api::Server> server_;
  metrics::Port metrics_port_;
};

}  // namespace spark
