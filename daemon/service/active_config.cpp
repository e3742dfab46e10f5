#include "daemon/service/active_config.hpp"

#include <utility>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/plan.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

// Planning a file of a megabyte takes a fraction of a second; the rest is for a busy computer.
constexpr Duration kPlan{20'000};
constexpr Duration kPlanPatience{30'000};  // longer than kPlan

std::string sentence_of(const config::Step& step) {
  const std::string changes = step.changes.empty() ? "" : " (" + join(step.changes, ", ") + ")";
  return "volume " + step.volume + ": " + to_string(step.action) + changes +
         (step.refused.empty() ? "" : " is left to do: " + step.refused);
}

// Logs each change, and returns all of them for the answer.
json::array announce(const config::Plan& plan) {
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
  return changed;
}

}  // namespace

ActiveConfig::ActiveConfig(asio::any_io_executor executor, std::filesystem::path file, config::Config config,
                           const Clock& clock, Notifier& notifier, workers::Runner& runner,
                           volumes::VolumeSet& volumes, Check check, OnChange on_change)
    : executor_(std::move(executor)),
      file_(std::move(file)),
      config_(std::move(config)),
      loaded_at_(clock.wall()),
      clock_(clock),
      notifier_(notifier),
      runner_(runner),
      volumes_(volumes),
      check_(std::move(check)),
      on_change_(std::move(on_change)) {}

asio::awaitable<Result<json::object>> ActiveConfig::reload() {
  if (is_reloading_) {
    co_return fail(Errc::Unavailable, "an earlier reload is still under way", "ask again when it has ended");
  }
  // Read on this thread: root wrote the file, and reading it takes a fraction of a second at most
  // (tests/unit, ConfigCost).
  auto wanted = config::load(file_);
  if (wanted) {
    if (auto same = config::check_simulation(*wanted, config_.has_simulation); !same)
      wanted = same.take_error();
  }
  if (auto fits = wanted ? check_(*wanted) : Result<>(); !fits) wanted = fits.take_error();
  problem_ = wanted ? "" : wanted.error().message();
  if (!wanted) {
    notifier_.status("the configuration file can't be used, and an older one is in force");
    log::error("the configuration in force stays: " + wanted.error().message());
    co_return fail_with(wanted.error(), "the configuration in force stays");
  }
  is_reloading_ = true;
  config::Plan plan;
  plan.settings = config::changed_settings(to_json(config_), *wanted);
  plan.volumes = co_await volumes_.apply(*wanted);
  config_ = *wanted;
  loaded_at_ = clock_.wall();
  is_reloading_ = false;

  json::array changed = announce(plan);
  on_change_();
  if (std::exchange(reload_again_, false)) launch(executor_, "reload", reload_on_signal());
  json::object answer = to_json(plan);
  answer["changed"] = std::move(changed);
  co_return answer;
}

asio::awaitable<void> ActiveConfig::reload_on_signal() {
  if (is_reloading_) {
    reload_again_ = true;
    co_return;
  }
  notifier_.reloading();
  (void)co_await reload();  // logs its own failure
  notifier_.ready();
}

// A worker makes the plan, because any member of the group may send a megabyte.
asio::awaitable<Result<json::object>> ActiveConfig::plan(json::object request, uid_t user) {
  workers::Call call{
      "plan", "the configuration", {{"file", file_.native()}, {"config", to_json(config_)}}, kPlan};
  if (const json::value* text = request.if_contains("yaml"); text != nullptr && text->is_string()) {
    call.request["yaml"] = *text;
    call.request["file"] = get_string(request, "file").value_or("the configuration");
  }
  json::array in_force;
  for (const config::InForce& one : volumes_.in_force()) in_force.push_back(to_json(one));
  call.request["volumes"] = std::move(in_force);
  auto& plans = plans_.try_emplace(user, executor_, 1, kPlanPatience).first->second;
  const workers::ConcurrencyLimiter::Pass pass = co_await plans.enter();
  auto plan = co_await runner_.run(std::move(call));
  if (!plan) co_return plan;
  for (json::value& value : (*plan)["volumes"].as_array()) {
    json::object& step = value.as_object();
    if (!config::takes_mount_away(get_text(step, "action"))) continue;
    const std::string why = co_await volumes_.why_it_stays(get_text(step, "name"));
    if (!why.empty()) step["refused"] = printable(why);
  }
  co_return plan;
}

}  // namespace spark
