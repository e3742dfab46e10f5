#include <algorithm>

#include "base/text.hpp"
#include "bench/record/record.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

json::array strings(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(printable(text));
  return array;
}

template <class Number>
json::value optional_number(const std::optional<Number>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

json::object object_of(const Bins& bins) {
  json::object object;
  for (const auto& [nanoseconds, count] : bins) object[std::to_string(nanoseconds)] = count;
  return object;
}

json::object object_of(const HostFacts& host) {
  return {{"name", printable(host.name)},
          {"kernel", printable(host.kernel)},
          {"machine", host.machine},
          {"cpus", host.cpus},
          {"memory_bytes", host.memory}};
}

json::object object_of(const StorageFacts& storage) {
  json::object settings;
  for (const auto& [name, value] : storage.settings) settings[name] = printable(value);
  json::object nic;
  if (!storage.nic.name.empty()) {
    nic = {{"name", storage.nic.name},
           {"bytes_per_second", storage.nic.bytes_per_second},
           {"mtu", storage.nic.mtu}};
  }
  return {{"kind", to_string(storage.kind)},
          {"address", printable(storage.address)},
          {"controllers", strings(storage.controllers)},
          {"settings", std::move(settings)},
          {"nic", std::move(nic)}};
}

json::array array_of(const std::vector<DataFile>& files) {
  json::array array;
  for (const DataFile& file : files) {
    array.push_back(json::object{{"path", printable(file.path)}, {"bytes", file.bytes}});
  }
  return array;
}

json::object object_of(const PathRecord& path) {
  json::object facts{{"size_bytes", path.size}, {"free_bytes", path.free}};
  if (path.mount) {
    facts["mount_point"] = printable(path.mount->mount_point);
    facts["source"] = printable(path.mount->source);
    facts["type"] = path.mount->type;
    facts["options"] = printable(path.mount->options);
  }
  return {{"name", path.name},
          {"path", printable(path.path)},
          {"folder", printable(path.folder)},
          {"mount", std::move(facts)},
          {"storage", object_of(path.storage)},
          {"read_only", !path.read_only_reason.empty()},
          {"read_only_reason", path.read_only_reason},
          {"unusable", printable(path.unusable)},
          {"files", array_of(path.files)},
          {"small_files", path.small_files},
          {"small_files_bytes", path.small_bytes},
          {"notes", strings(path.notes)}};
}

json::object object_of(const ScenarioRecord& scenario) {
  return {
      {"id", scenario.id},         {"title", scenario.title},
      {"shape", scenario.shape},   {"cache", to_string(scenario.cache)},
      {"writes", scenario.writes}, {"headline", scenario.counts_ios ? "ios_per_second" : "bytes_per_second"}};
}

json::object object_of(const Cell& cell) {
  json::object object{
      {"path", cell.path},
      {"scenario", cell.scenario},
      {"round", cell.round},
      {"order", cell.order},
      {"at_s", cell.at_s},
      {"discarded", cell.round == 0},
      {"status", to_string(cell.status)},
      {"reasons", strings(cell.reasons)},
      {"cautions", strings(cell.cautions)},
      {"command", printable(cell.command)},
      {"raw_file", cell.raw_file},
      {"bytes", cell.bytes},
      {"ios", cell.ios},
      {"seconds", cell.seconds},
      {"bytes_per_second", cell.seconds > 0 ? static_cast<double>(cell.bytes) / cell.seconds : 0.0},
      {"fio_cpu_seconds", cell.cpu_seconds},
      {"origin", json::object{{"bytes", optional_number(cell.origin.bytes)},
                              {"counter", cell.origin.counter},
                              {"nic_bytes", optional_number(cell.origin.nic_bytes)}}},
      {"latency_ns_bins", object_of(cell.bins)}};
  if (cell.cpu) {
    object["host_cpu"] = json::object{{"seconds", cell.cpu->seconds},
                                      {"busy_s", cell.cpu->busy},
                                      {"kernel_threads_s", cell.cpu->kernel_threads},
                                      {"idle_share", cell.cpu->idle_share},
                                      {"busiest_core", cell.cpu->busiest_core}};
  }
  return object;
}

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
                      {"reasons", strings(summary.reasons)},
                      {"cautions", strings(summary.cautions)},
                      {"cache", summary.cache},
                      {"valid_rounds", summary.rates.size()}};
  if (summary.rates.empty()) return object;
  object["bytes_per_second"] = range_of(summary.rates);
  object["ios_per_second"] = range_of(summary.io_rates);
  object["cpu_s_per_gb"] = optional_number(summary.cpu_per_gb);
  object["kernel_cpu_s_per_gb"] = optional_number(summary.kernel_cpu_per_gb);
  object["latency_ns"] = json::object{{"p50", optional_number(percentile(summary.bins, 50))},
                                      {"p95", optional_number(percentile(summary.bins, 95))},
                                      {"p99", optional_number(percentile(summary.bins, 99))},
                                      {"p99_9", optional_number(percentile(summary.bins, 99.9))},
                                      {"samples", sample_count(summary.bins)}};
  return object;
}

json::object object_of(const AskedFor& asked) {
  return {{"dataset", printable(asked.dataset)},
          {"dataset_bytes", asked.dataset_bytes},
          {"dataset_files", asked.dataset_files},
          {"epochs", asked.epochs},
          {"demand_bytes_per_second", asked.demand.bytes_per_second},
          {"demand_words", printable(asked.demand.words)}};
}

}  // namespace

json::object to_json(const Record& record) {
  json::array paths, scenarios, cells, summary;
  for (const PathRecord& path : record.paths) paths.push_back(object_of(path));
  for (const ScenarioRecord& scenario : record.scenarios) scenarios.push_back(object_of(scenario));
  for (const Cell& cell : record.cells) cells.push_back(object_of(cell));
  for (const ScenarioRecord& scenario : record.scenarios) {
    for (const PathRecord& path : record.paths) {
      summary.push_back(summary_object(record, path.name, scenario.id));
    }
  }
  return {{"schema", kRecordSchema},
          {"run_id", record.run_id},
          {"tool_version", record.tool_version},
          {"started", rfc3339(record.started)},
          {"seconds", record.seconds},
          {"interrupted", record.interrupted},
          {"seed", std::to_string(record.seed)},
          {"size_bytes", record.size},
          {"runtime_s", record.runtime.count()},
          {"rounds", record.rounds},
          {"max_rounds", record.max_rounds},
          {"rate_limit", record.rate_limit},
          {"asked", object_of(record.asked)},
          {"host", object_of(record.host)},
          {"idle_cpu", json::object{{"cpu_s_per_s", record.idle_cpu.rate}, {"error", record.idle_cpu.error}}},
          {"fio", json::object{{"version", record.fio.version},
                               {"engine", record.fio.engine},
                               {"engine_note", printable(record.fio.engine_note)}}},
          {"paths", std::move(paths)},
          {"scenarios", std::move(scenarios)},
          {"cells", std::move(cells)},
          {"summary", std::move(summary)},
          {"verdict", to_json(verdict_of(record))},
          {"baseline", record.paths.empty() ? "" : record.paths[baseline_of(record)].name},
          {"warnings", strings(record.warnings)}};
}

}  // namespace spark::bench
