// A new configuration: what it would change, and changing it.
#include <utility>

#include "base/text.hpp"
#include "daemon/config/plan.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/service.hpp"

namespace spark {
namespace {

std::string sentence_of(const config::Step& step) {
  const std::string changes = step.changes.empty() ? "" : " (" + join(step.changes, ", ") + ")";
  return "volume " + step.volume + ": " + to_string(step.action) + changes +
         (step.refused.empty() ? "" : " is left to do: " + step.refused);
}

}  // namespace

asio::awaitable<Result<json::object>> Service::reload() {
  if (reloading_) {
    co_return fail(Errc::Unavailable, "an earlier reload is still under way", "ask again when it has ended");
  }
  const auto wanted = config::load(options_.config_file);
  last_reload_worked_ = wanted.has_value();
  if (!wanted) {
    log::error("the configuration in force stays: " + wanted.error().message());
    co_return fail_with(wanted.error(), "the configuration in force stays");
  }
  reloading_ = true;
  config::Plan plan;
  plan.settings = config::changed_settings(config_, *wanted);
  plan.volumes = co_await volumes_.apply(*wanted);
  config_ = *wanted;
  config_loaded_ = clock_.wall();
  reloading_ = false;

  json::array changed;
  for (const config::Step& step : plan.volumes) {
    if (step.action == config::Action::Nothing) continue;
    const std::string sentence = sentence_of(step);
    if (step.refused.empty()) {
      log::info(sentence);
    } else {
      log::warning(sentence);
    }
    changed.emplace_back(printable(sentence));
  }
  for (const std::string& setting : plan.settings) changed.emplace_back(setting);
  stager_.config_changed();
  watches_.apply(config_);
  metrics_port_.apply(config_.metrics);
  tell_status();
  if (std::exchange(reload_again_, false)) launch(context_.get_executor(), "reload", reload_on_signal());
  json::object answer = to_json(plan);
  answer["changed"] = std::move(changed);
  co_return answer;
}

asio::awaitable<void> Service::reload_on_signal() {
  if (reloading_) {
    reload_again_ = true;
    co_return;
  }
  notifier_.reloading();
  (void)co_await reload();  // logs why it kept the old one
  notifier_.ready();
}

// Of the text in the request, or of the daemon's own file as it is now.
asio::awaitable<Result<json::object>> Service::plan(json::object request) {
  const auto text = get_string(request, "yaml");
  const auto file = get_string(request, "file").value_or("the configuration");
  const auto wanted = text ? config::parse(*text, file) : config::load(options_.config_file);
  if (!wanted) co_return tl::unexpected<Error>(wanted.error());
  config::Plan plan;
  plan.settings = config::changed_settings(config_, *wanted);
  plan.volumes = co_await volumes_.plan(*wanted);
  co_return to_json(plan);
}

}  // namespace spark
