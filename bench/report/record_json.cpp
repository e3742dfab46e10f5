#include <algorithm>

#include "base/text.hpp"
#include "bench/record/record_writer.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

json::object range_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  json::object object{{"median", median(values)}, {"min", *low}, {"max", *high}, {"spread", spread(values)}};
  if (const auto estimate = estimate_of(values)) {
    object["low_95"] = estimate->range.low;
    object["high_95"] = estimate->range.high;
  }
  return object;
}

json::object summary_object(const Record& record, const std::string& path, const std::string& scenario) {
  const Summary summary = summarize(record, path, scenario);
  json::object object{{"path", path},
                      {"scenario", scenario},
                      {"status", to_string(summary.status)},
                      {"reasons", FieldWriter::value_of(summary.reasons)},
                      {"cautions", FieldWriter::value_of(summary.cautions)},
                      {"cache", summary.cache},
                      {"valid_rounds", summary.rates.size()}};
  if (summary.rates.empty()) return object;
  object["bytes_per_second"] = range_of(summary.rates);
  if (is_loading(scenario)) object["seconds_to_loaded"] = range_of(summary.seconds);
  if (summary.memory)
    object["free_memory_bytes"] = json::object{{"before", summary.memory->before},
                                               {"after", summary.memory->after},
                                               {"less", summary.memory->taken()},
                                               {"cached", or_null(summary.memory->cached)}};
  object["ios_per_second"] = range_of(summary.io_rates);
  object["cpu_s_per_gb"] = or_null(summary.cpu_per_gb);
  object["kernel_cpu_s_per_gb"] = or_null(summary.kernel_cpu_per_gb);
  object["latency_ns"] = json::object{{"p50", or_null(percentile(summary.bins, 50))},
                                      {"p95", or_null(percentile(summary.bins, 95))},
                                      {"p99", or_null(percentile(summary.bins, 99))},
                                      {"p99_9", or_null(percentile(summary.bins, 99.9))},
                                      {"samples", sample_count(summary.bins)}};
  return object;
}

}  // namespace

json::object to_json(const Record& record) {
  json::object object{{"schema", kRecordSchema}};
  visit_fields(record, FieldWriter(object));
  const json::value warnings = object["warnings"];  // they are last in the object
  object.erase("warnings");
  json::array& summary = object["summary"].emplace_array();
  for (const ScenarioRecord& scenario : record.scenarios) {
    for (const PathRecord& path : record.paths) {
      summary.push_back(summary_object(record, path.name, scenario.id));
    }
  }
  object["verdict"] = to_json(verdict_of(record));
  object["baseline"] = record.paths.empty() ? "" : record.paths[baseline_of(record)].name;
  object["warnings"] = warnings;
  return object;
}

}  // namespace spark::bench
