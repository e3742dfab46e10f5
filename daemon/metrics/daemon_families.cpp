#include "base/version.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {

void add_daemon(Page& page, const DaemonFacts& facts) {
  gauge(page, "spark_stage_build_info", "Version of spark-staged; the value is always 1.")
      .add({{"version", kVersion}, {"compiler", __VERSION__}}, 1);
  gauge(page, "spark_stage_workers",
        "Worker processes that run, and those abandoned because the kernel blocks them.")
      .add({{"state", "running"}}, facts.workers.running)
      .add({{"state", "abandoned"}}, facts.abandoned_now);
  counter(page, "spark_stage_workers_started_total", "Worker processes started.")
      .add({}, facts.workers.started);
  counter(page, "spark_stage_workers_timed_out_total", "Worker processes that were killed at their deadline.")
      .add({}, facts.workers.timed_out);
  counter(page, "spark_stage_workers_abandoned_total", "Worker processes that were abandoned.")
      .add({}, facts.workers.abandoned);
  gauge(page, "spark_stage_config_last_reload_successful",
        "1 if the configuration file could be used when it was read last, else 0.")
      .add({}, facts.last_reload_worked);
  gauge(page, "spark_stage_config_last_reload_success_timestamp_seconds",
        "When the configuration in force was read.")
      .add({}, facts.config_loaded);
}

}  // namespace spark::metrics
