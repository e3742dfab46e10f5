#include "daemon/service/service.hpp"

#include <signal.h>

#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/outputs/output_place.hpp"
#include "daemon/service/dataset_source.hpp"
#include "daemon/service/metrics_page.hpp"
#include "daemon/service/routes.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark {
namespace {

constexpr Duration kMetricsRetry{5000};

// Elements of `one` missing in `other`. A target may change thousands at once, so a few are named and the
// rest are counted.
std::string first_missing(const std::set<std::string>& one, const std::set<std::string>& other) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> named;
  std::size_t missing = 0;
  for (const std::string& subsystem : one) {
    if (other.contains(subsystem) || ++missing > kMostNamed) continue;
    named.push_back(printable(subsystem));
  }
  return join(named, ", ") +
         (missing > kMostNamed ? " and " + std::to_string(missing - kMostNamed) + " more" : "");
}

}  // namespace

Service::Service(asio::io_context& context, ServiceOptions options, config::Config config,
                 const MakeHost& make_host, const Clock& clock, Notifier& notifier)
    : context_(context),
      options_(std::move(options)),
      notifier_(notifier),
      signals_(context, SIGTERM, SIGINT, SIGHUP),
      runner_(context.get_executor(), options_.program),
      jobs_(context.get_executor(), clock),
      snapshot_(clock),
      host_(make_host({context.get_executor(), clock, runner_, snapshot_, options_.state_dir / "volumes"})),
      volumes_(
          context.get_executor(), runner_,
          [this](const config::Volume& volume, const std::optional<config::Target>& target) {
            return host_->seams_of(volume, target);
          },
          clock, options_.state_dir,
          [this](const volumes::Volume& volume, volumes::State before) { volume_changed(volume, before); }),
      config_(
          context.get_executor(), options_.config_file, std::move(config), clock, notifier, runner_, volumes_,
          [this](const config::Config& wanted) {
            return copies_.datasets.cache_place().check_path(wanted.cache.path.native());
          },
          [this] { config_changed(); }),
      watches_(
          context.get_executor(),
          [this](const config::Target& target) { return host_->discovery_of(target); }, clock,
          [this](const discovery::TargetWatch& watch, const std::set<std::string>& before) {
            offer_changed(watch, before);
          }),
      copies_{
          datasets::Datasets(
              {context.get_executor(),
               runner_,
               clock,
               options_.state_dir.native(),
               [this]() -> const config::Config& { return config_.current(); },
               [this](const config::Dataset& dataset) {
                 auto place = find_source(dataset, volumes_, snapshot_);
                 if (place) host_->limit_to_host(*place);
                 return place;
               },
               [this](const config::Dataset& dataset) {
                 const auto volume = volumes_.find(dataset.volume);
                 return volume && volume->is_settling();
               },
               {},
               [this, &clock](const config::Dataset& dataset) {
                 return may_be_back_soon(dataset, volumes_, clock.wall());
               },
               {&notifier, std::make_shared<std::map<std::string, UniqueFd>>(kept_descriptors())}},
              jobs_),
          outputs::StageOuts({context.get_executor(), runner_, clock, options_.state_dir / "stage-outs",
                              [this]() -> const config::Config& { return config_.current(); },
                              [this](const std::string& volume) {
                                return outputs::find_output_place(volume, volumes_, host_->is_simulated());
                              },
                              [this](const std::string& volume) {
                                return outputs::find_published_place(volume, volumes_, host_->is_simulated());
                              },
                              [this] { return copies_.datasets.must_yield(); },
                              [this](const std::string& volume, const std::string& folder) {
                                return entries_in_use(volume, folder);
                              }},
                             jobs_),
          {context.get_executor(), runner_, jobs_, options_.state_dir.native()}},
      ports_{{context.get_executor(), [this] { return metrics_text(parts_); }, kMetricsRetry},
             {context.get_executor(), runner_, options_.state_dir.native()}},
      parts_{.executor = context.get_executor(),
             .clock = clock,
             .started = clock.steady(),
             .is_simulated = host_->is_simulated(),
             .runner = runner_,
             .jobs = jobs_,
             .volumes = volumes_,
             .config = config_,
             .watches = watches_,
             .datasets = copies_.datasets,
             .outputs = copies_.outputs,
             .output_watches = copies_.watches,
             .peers = ports_.peers,
             .memory = copies_.memory,
             .metrics = ports_.metrics} {}

Result<std::vector<std::string>> Service::entries_in_use(const std::string& volume,
                                                         const std::string& folder) const {
  const auto datasets = copies_.datasets.in_use();
  if (!datasets) return fail(datasets.error());
  std::vector<std::string> names;
  for (const std::string& name : *datasets) {
    const auto dataset = config::find_dataset(config_.current(), name);
    if (!dataset || dataset->volume != volume) continue;
    const auto below = std::filesystem::path(dataset->path).lexically_relative(folder.empty() ? "." : folder);
    if (!below.empty() && *below.begin() != "..") names.push_back(below.begin()->native());
  }
  return names;
}

Result<> Service::start() {
  auto server = api::Server::listen(
      context_.get_executor(), options_.socket, options_.group,
      [this](api::Request request) { return answer_request(parts_, std::move(request)); });
  if (!server) return server.take_error();
  server_ = std::move(*server);
  server_->start();
  launch(context_.get_executor(), "signals", handle_signals());
  launch(context_.get_executor(), "watchdog", feed_watchdog());
  launch(context_.get_executor(), "datasets", copies_.datasets.start());
  launch(context_.get_executor(), "stage-outs", copies_.outputs.start());
  const config::Config& config = config_.current();
  // Before the volumes, so that the host is complete when they first check it.
  auto listening = host_->start([this](const Uevent& event) { device_changed(event); });
  if (!listening) log::survived(listening.error());
  volumes_.start(config);
  watches_.apply(config);
  copies_.watches.apply(config);
  ports_.metrics.apply(config.metrics);
  apply_to_host(config);
  log::info("answering on " + options_.socket.native() + ", " + std::to_string(config.volumes.size()) +
            " volumes from " + config.file.native());
  notifier_.ready();
  report_status();
  return {};
}

void Service::volume_changed(const volumes::Volume& volume, volumes::State before) {
  const volumes::Status& status = volume.status();
  const std::string what =
      "volume " + volume.settings().name + ": " +
      (status.state == before ? to_string(status.state)
                              : std::string(to_string(before)) + " -> " + to_string(status.state)) +
      (status.reason.empty() ? "" : ": " + printable(status.reason));
  const bool trouble = status.state == volumes::State::Stalled || status.state == volumes::State::Lost ||
                       status.state == volumes::State::Refused;
  std::vector<log::Field> fields = {{"SPARK_VOLUME", volume.settings().name},
                                    {"SPARK_STATE_OLD", to_string(before)},
                                    {"SPARK_STATE_NEW", to_string(status.state)}};
  if (volume.settings().nvme) fields.push_back({"NVME_NQN", volume.settings().nvme->subsystem});
  for (const volumes::PathStatus& path : status.paths) fields.push_back({"NVME_CTRL", path.controller});
  log::event(trouble, what, fields);
  report_status();
}

void Service::offer_changed(const discovery::TargetWatch& watch, const std::set<std::string>& before) {
  const std::string& name = watch.target().name;
  const std::set<std::string>& now = watch.status().offered;
  if (const std::string added = first_missing(now, before); !added.empty())
    log::info("target " + name + " offers " + added + " now");
  if (const std::string gone = first_missing(before, now); !gone.empty())
    log::info("target " + name + " does not list " + gone + " any more; existing connections stay");
  volumes_.target_changed(name);
}

void Service::device_changed(const Uevent& event) {
  snapshot_.forget();
  if (event.is_disk) {
    if (event.action == "add") volumes_.namespace_added();
    return;
  }
  watches_.heard(event);
  volumes_.controller_changed(event.device);
}

void Service::config_changed() {
  const config::Config& config = config_.current();
  copies_.datasets.config_changed();
  copies_.watches.apply(config);
  watches_.apply(config);
  ports_.metrics.apply(config.metrics);
  apply_to_host(config);
  report_status();
}

// What a simulated host does not have.
void Service::apply_to_host(const config::Config& config) {
  if (host_->is_simulated()) return;
  ports_.peers.apply(config);
  copies_.memory.apply(config);
}

void Service::report_status() {
  std::size_t ready = 0;
  std::string not_ready;
  for (const auto& volume : volumes_.all()) {
    if (volume->status().state == volumes::State::Ready) {
      ++ready;
    } else if (not_ready.empty()) {
      not_ready = "; " + volume->settings().name + " is " + to_string(volume->status().state);
    }
  }
  const auto stuck = runner_.abandoned().size();
  notifier_.status(std::to_string(ready) + " of " + std::to_string(volumes_.all().size()) + " volumes ready" +
                   not_ready + (config_.problem().empty() ? "" : "; an older configuration is in force") +
                   (stuck == 0 ? "" : "; " + std::to_string(stuck) + " workers stuck in the kernel"));
}

asio::awaitable<void> Service::handle_signals() {
  for (;;) {
    const auto [error, number] = co_await signals_.async_wait(kToken);
    if (error) co_return;
    if (number == SIGHUP) {
      launch(context_.get_executor(), "reload", config_.reload_on_signal());
      continue;
    }
    log::info(std::string("stopping on ") + (number == SIGTERM ? "SIGTERM" : "SIGINT") + "; mounts stay");
    co_await copies_.datasets.stop();
    stop();
    co_return;
  }
}

// Runs on the thread that does all the work: if that thread hangs, systemd restarts the daemon.
asio::awaitable<void> Service::feed_watchdog() {
  const auto interval = watchdog_interval();
  if (!interval) co_return;
  Timer timer(context_.get_executor());
  for (;;) {
    notifier_.watchdog();
    timer.expires_after(std::chrono::floor<Duration>(*interval));
    if (!co_await timer.wait()) co_return;
  }
}

// Workers die with the daemon, their parent. Workers stuck in the kernel do not, and the shutdown does not
// wait for them.
void Service::stop() {
  notifier_.stopping();
  host_->stop();
  watches_.stop();
  volumes_.stop();
  server_->stop();
  ports_.metrics.stop();
  context_.stop();
}

}  // namespace spark
