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
                  "Outputs whose sending to a volume ended, by how.",
                  Kind::Counter,
                  {ended("sent", totals.sent), ended("unchanged", totals.unchanged),
                   ended("failed", totals.failed), ended("cancelled", totals.cancelled)}});
  page.push_back(one_sample("spark_stage_stage_out_sent_bytes_total",
                            "Bytes of the outputs that were sent and published.", Kind::Counter,
                            totals.sent_bytes));
  page.push_back(one_sample("spark_stage_stage_outs_pending", "Outputs that are not on their volume yet.",
                            Kind::Gauge, facts.backlog.outputs));
  page.push_back(one_sample("spark_stage_stage_out_backlog_bytes",
                            "What is left to send of the outputs whose size is known.", Kind::Gauge,
                            facts.backlog.bytes));
}

}  // namespace spark::metrics
