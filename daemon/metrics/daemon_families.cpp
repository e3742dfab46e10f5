#include "base/version.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {

void add_daemon(Page& page, const DaemonFacts& facts) {
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  page.push_back({"spark_stage_build_info",
                  "Version of spark-staged; the value is always 1.",
                  Kind::Gauge,
                  {{{{"version", kVersion}, {"compiler", __VERSION__}}, 1}}});
  page.push_back({"spark_stage_workers",
                  "Worker processes that run, and those abandoned because the kernel blocks them.",
                  Kind::Gauge,
                  {{{{"state", "running"}}, number(facts.workers.running)},
                   {{{"state", "abandoned"}}, number(facts.abandoned_now)}}});
  page.push_back({"spark_stage_workers_started_total",
                  "Worker processes started.",
                  Kind::Counter,
                  {{{}, number(facts.workers.started)}}});
  page.push_back({"spark_stage_workers_timed_out_total",
                  "Worker processes that were killed at their deadline.",
                  Kind::Counter,
                  {{{}, number(facts.workers.timed_out)}}});
  page.push_back({"spark_stage_workers_abandoned_total",
                  "Worker processes that were abandoned.",
                  Kind::Counter,
                  {{{}, number(facts.workers.abandoned)}}});
  page.push_back({"spark_stage_config_last_reload_successful",
                  "1 if the configuration file could be used when it was read last, else 0.",
                  Kind::Gauge,
                  {{{}, facts.last_reload_worked ? 1.0 : 0.0}}});
  page.push_back({"spark_stage_config_last_reload_success_timestamp_seconds",
                  "When the configuration in force was read.",
                  Kind::Gauge,
                  {{{}, std::chrono::duration<double>(facts.config_loaded.time_since_epoch()).count()}}});
}

}  // namespace spark::metrics
