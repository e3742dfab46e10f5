#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

Family one_sample(const char* name, const char* help, Kind kind, std::uint64_t value) {
  return {name, help, kind, {{{}, static_cast<double>(value)}}};
}

}  // namespace

void add_outputs(Page& page, const OutputFacts& facts) {
  const auto ended = [](const char* result, std::uint64_t count) {
    return Sample{{{"result", result}}, static_cast<double>(count)};
  };
  const outputs::Totals& totals = facts.totals;
  page.push_back({"spark_stage_stage_outs_total",
                  "Outputs that were to be sent to a volume, by result.",
                  Kind::Counter,
                  {ended("sent", totals.sent), ended("unchanged", totals.unchanged),
                   ended("failed", totals.failed), ended("cancelled", totals.cancelled)}});
  page.push_back(one_sample("spark_stage_stage_out_sent_bytes_total",
                            "Bytes of the outputs that were sent and published.", Kind::Counter,
                            totals.sent_bytes));
  page.push_back(one_sample("spark_stage_stage_outs_pending", "Outputs that are not on their volume yet.",
                            Kind::Gauge, facts.backlog.outputs));
  page.push_back(one_sample("spark_stage_stage_out_backlog_bytes",
                            "Bytes left to send, of the outputs of known size.", Kind::Gauge,
                            facts.backlog.bytes));
  Family newest{"spark_stage_output_newest_published_timestamp_seconds",
                "When the newest checkpoint of an output that is on its volume was written.",
                Kind::Gauge,
                {}};
  Family backlog{"spark_stage_output_backlog_bytes",
                 "Complete checkpoints that are not on their volume yet, by output.",
                 Kind::Gauge,
                 {}};
  Family failures{"spark_stage_output_failures_total",
                  "Checkpoints that could not be sent, by output.",
                  Kind::Counter,
                  {}};
  Family behind{"spark_stage_output_falls_behind",
                "1 while checkpoints of an output are complete faster than they are sent.",
                Kind::Gauge,
                {}};
  for (const OutputFacts::Watched& one : facts.watched) {
    const std::vector<std::pair<std::string, std::string>> labels = {{"output", one.name}};
    if (one.published_mtime_ns > 0)
      newest.samples.push_back({labels, static_cast<double>(one.published_mtime_ns) / 1e9});
    backlog.samples.push_back({labels, static_cast<double>(one.backlog)});
    failures.samples.push_back({labels, static_cast<double>(one.failures)});
    behind.samples.push_back({labels, one.is_behind ? 1.0 : 0.0});
  }
  for (Family* family : {&newest, &backlog, &failures, &behind}) page.push_back(std::move(*family));
}

}  // namespace spark::metrics
