#include "bench/record.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::bench {
namespace {

json::array strings(const std::vector<std::string>& texts, bool safe) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(safe ? printable(text) : text);
  return array;
}

json::object object_of(const Bins& bins) {
  json::object object;
  for (const auto& [nanoseconds, count] : bins) object[std::to_string(nanoseconds)] = count;
  return object;
}

json::value optional_number(std::optional<std::uint64_t> number) {
  return number ? json::value(*number) : json::value(nullptr);
}

json::object object_of(const HostFacts& host) {
  return {{"name", host.name},
          {"kernel", host.kernel},
          {"machine", host.machine},
          {"cpus", host.cpus},
          {"memory_bytes", host.memory}};
}

json::object object_of(const PathRecord& path) {
  json::object facts{{"size_bytes", path.size}, {"free_bytes", path.free}};
  if (path.mount) {
    facts["mount_point"] = printable(path.mount->mount_point);
    facts["source"] = printable(path.mount->source);
    facts["type"] = path.mount->type;
    facts["options"] = printable(path.mount->options);
  }
  json::array files;
  for (const DataFile& file : path.files) {
    files.push_back(json::object{{"path", printable(file.path)}, {"bytes", file.bytes}});
  }
  return {{"name", path.name},
          {"path", printable(path.path)},
          {"folder", printable(path.folder)},
          {"mount", std::move(facts)},
          {"read_only", !path.read_only_reason.empty()},
          {"read_only_reason", path.read_only_reason},
          {"unusable", path.unusable},
          {"files", std::move(files)},
          {"notes", strings(path.notes, true)}};
}

json::object object_of(const ScenarioRecord& scenario) {
  return {{"id", scenario.id},
          {"title", scenario.title},
          {"shape", scenario.shape},
          {"writes", scenario.writes},
          {"headline", scenario.counts_ios ? "ios_per_second" : "bytes_per_second"}};
}

json::object object_of(const Cell& cell) {
  const double seconds = cell.seconds;
  return {{"path", cell.path},
          {"scenario", cell.scenario},
          {"round", cell.round},
          {"order", cell.order},
          {"status", to_string(cell.status)},
          {"reasons", strings(cell.reasons, true)},
          {"command", printable(shell_line(cell.command))},
          {"bytes", cell.bytes},
          {"ios", cell.ios},
          {"seconds", seconds},
          {"bytes_per_second", seconds > 0 ? static_cast<double>(cell.bytes) / seconds : 0.0},
          {"fio_cpu_seconds", cell.cpu_seconds},
          {"latency_ns_bins", object_of(cell.bins)}};
}

json::object summary_object(const Record& record, const std::string& path, const std::string& scenario) {
  const Summary summary = summarize(record, path, scenario);
  json::object object{{"path", path},
                      {"scenario", scenario},
                      {"status", to_string(summary.status)},
                      {"reasons", strings(summary.reasons, true)},
                      {"valid_rounds", summary.rates.size()}};
  if (summary.rates.empty()) return object;
  const auto [low, high] = std::minmax_element(summary.rates.begin(), summary.rates.end());
  object["bytes_per_second"] = json::object{{"median", median(summary.rates)}, {"min", *low}, {"max", *high}};
  const auto [few, many] = std::minmax_element(summary.io_rates.begin(), summary.io_rates.end());
  object["ios_per_second"] =
      json::object{{"median", median(summary.io_rates)}, {"min", *few}, {"max", *many}};
  object["latency_ns"] = json::object{{"p50", optional_number(percentile(summary.bins, 50))},
                                      {"p95", optional_number(percentile(summary.bins, 95))},
                                      {"p99", optional_number(percentile(summary.bins, 99))},
                                      {"p99_9", optional_number(percentile(summary.bins, 99.9))},
                                      {"samples", sample_count(summary.bins)}};
  return object;
}

}  // namespace

const char* to_string(CellStatus status) {
  switch (status) {
    case CellStatus::Valid:
      return "valid";
    case CellStatus::Invalid:
      return "invalid";
    case CellStatus::NotMeasured:
      return "not_measured";
  }
  return "not_measured";
}

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
          {"cache", "direct"},
          {"size_bytes", record.size},
          {"runtime_s", record.runtime.count()},
          {"rounds", record.rounds},
          {"host", object_of(record.host)},
          {"fio", json::object{{"version", record.fio.version},
                               {"engine", record.fio.engine},
                               {"engine_note", printable(record.fio.engine_note)}}},
          {"paths", std::move(paths)},
          {"scenarios", std::move(scenarios)},
          {"cells", std::move(cells)},
          {"summary", std::move(summary)},
          {"baseline", record.paths.empty() ? "" : record.paths[baseline_of(record)].name},
          {"warnings", strings(record.warnings, true)}};
}

Summary summarize(const Record& record, const std::string& path, const std::string& scenario) {
  Summary summary;
  for (const Cell& cell : record.cells) {
    if (cell.path != path || cell.scenario != scenario) continue;
    if (cell.status == CellStatus::Valid) {
      summary.status = CellStatus::Valid;
      summary.rates.push_back(static_cast<double>(cell.bytes) / cell.seconds);
      summary.io_rates.push_back(static_cast<double>(cell.ios) / cell.seconds);
      merge_into(summary.bins, cell.bins);
    } else if (cell.status == CellStatus::Invalid && summary.status != CellStatus::Valid) {
      summary.status = CellStatus::Invalid;
    }
    for (const std::string& reason : cell.reasons) {
      if (std::find(summary.reasons.begin(), summary.reasons.end(), reason) == summary.reasons.end()) {
        summary.reasons.push_back(reason);
      }
    }
  }
  return summary;
}

bool has_results(const Record& record) {
  return std::any_of(record.cells.begin(), record.cells.end(),
                     [](const Cell& cell) { return cell.status == CellStatus::Valid; });
}

std::size_t baseline_of(const Record& record) {
  for (std::size_t i = 0; i < record.paths.size(); ++i) {
    if (record.paths[i].name == "local") return i;
  }
  return 0;
}

}  // namespace spark::bench
