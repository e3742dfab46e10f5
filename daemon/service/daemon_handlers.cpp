// Requests about the daemon as a whole: its state and its configuration.
#include "base/version.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"
#include "daemon/service/metrics_page.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;

}  // namespace

Answer get_health(const DaemonParts& /*daemon*/, const Request& /*request*/) {
  return ok_answer(json::object{{"status", "ok"}});
}

namespace {

json::value cache_problem(const DaemonParts& daemon) {
  const std::string why = daemon.datasets.cache_problem();
  return or_null(why);
}

}  // namespace

Answer get_readiness(const DaemonParts& daemon, const Request& /*request*/) {
  json::array waiting_for;
  for (const auto& volume : daemon.volumes.all()) {
    const auto state = volume->status().state;
    if (state != volumes::State::Ready && state != volumes::State::Down)
      waiting_for.emplace_back(volume->settings().name);
  }
  const bool ready = waiting_for.empty() && daemon.datasets.cache_problem().empty();
  Answer answer = ok_answer(json::object{
      {"ready", ready}, {"waiting_for", std::move(waiting_for)}, {"cache_problem", cache_problem(daemon)}});
  if (!ready) answer.status = 503;
  return answer;
}

// 300 volumes are 6,000 lines.
Answer get_metrics(const DaemonParts& daemon, const Request& request) {
  Answer answer;
  answer.metrics = request.caller.may_change ? metrics_text(daemon) : daemon.metrics.page();
  return answer;
}

Answer get_status(const DaemonParts& daemon, const Request& /*request*/) {
  json::array volumes;
  for (const auto& volume : daemon.volumes.all())
    volumes.push_back(volumes::to_json(volume->settings(), volume->status()));
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(daemon.clock.steady() - daemon.started);
  json::object status{{"version", kVersion},
                      {"uptime_s", uptime.count()},
                      {"config_problem", or_null(daemon.config.problem())},
                      {"volumes", std::move(volumes)},
                      {"targets", daemon.watches.to_json(daemon.config.current())},
                      {"stages", daemon.datasets.stages()},
                      {"stage_outs", daemon.outputs.list()},
                      {"outputs", daemon.output_watches.list()},
                      {"cache", daemon.datasets.cache()},
                      {"cache_problem", cache_problem(daemon)},
                      {"memory", daemon.memory.status()},
                      {"fleet", daemon.peers.status()},
                      {"stuck_workers", daemon.runner.abandoned().size()}};
  if (daemon.is_simulated) status["simulated"] = true;
  return ok_answer(std::move(status));
}

Answer get_config(const DaemonParts& daemon, const Request& /*request*/) {
  return ok_answer(config::to_json(daemon.config.current()));
}

asio::awaitable<Answer> post_reload(const DaemonParts& daemon, Request /*request*/) {
  auto changed = co_await daemon.config.reload();
  co_return answer_with(std::move(changed));
}

asio::awaitable<Answer> post_plan(const DaemonParts& daemon, Request request) {
  auto planned = co_await daemon.config.plan(std::move(request.body), request.caller.uid);
  co_return answer_with(std::move(planned));
}

}  // namespace spark
