#include "daemon/metrics/families.hpp"

namespace spark::metrics {

void add_outputs(Page& page, const OutputFacts& facts) {
  const outputs::Totals& totals = facts.totals;
  counter(page, "spark_stage_stage_outs_total", "Outputs that were to be sent to a volume, by result.")
      .add({{"result", "sent"}}, totals.sent)
      .add({{"result", "unchanged"}}, totals.unchanged)
      .add({{"result", "failed"}}, totals.failed)
      .add({{"result", "cancelled"}}, totals.cancelled);
  counter(page, "spark_stage_stage_out_sent_bytes_total",
          "Bytes of the outputs that were sent and published.")
      .add({}, totals.sent_bytes);
  gauge(page, "spark_stage_stage_outs_pending", "Outputs that are not on their volume yet.")
      .add({}, facts.backlog.outputs);
  gauge(page, "spark_stage_stage_out_backlog_bytes", "Bytes left to send, of the outputs of known size.")
      .add({}, facts.backlog.bytes);
  Family& newest = gauge(page, "spark_stage_output_newest_published_timestamp_seconds",
                         "When the newest checkpoint of an output that is on its volume was written.");
  Family& backlog = gauge(page, "spark_stage_output_backlog_bytes",
                          "Complete checkpoints that are not on their volume yet, by output.");
  Family& failures =
      counter(page, "spark_stage_output_failures_total", "Checkpoints that could not be sent, by output.");
  Family& behind = gauge(page, "spark_stage_output_falls_behind",
                         "1 while checkpoints of an output are complete faster than they are sent.");
  for (const OutputFacts::Watched& one : facts.watched) {
    const Labels labels = {{"output", one.name}};
    if (one.published_mtime_ns > 0) newest.add(labels, static_cast<double>(one.published_mtime_ns) / 1e9);
    backlog.add(labels, one.backlog);
    failures.add(labels, one.failures);
    behind.add(labels, one.is_behind);
  }
}

}  // namespace spark::metrics
