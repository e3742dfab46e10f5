#include <algorithm>

#include "base/text.hpp"
#include "bench/record/words.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

std::string range_of(const Summary& summary, const ScenarioRecord& scenario) {
  const std::vector<double> values = summary.headlines();
  if (const auto estimate = estimate_of(values)) {
    return range_text(estimate->range.low, estimate->range.high, scenario);
  }
  return "-";
}

ResultRow row_of(const Record& record, const ScenarioRecord& scenario, const PathRecord& path) {
  const Summary summary = summarize(record, path.name, scenario.id);
  const std::vector<double> values = summary.headlines();
  ResultRow row{scenario.title,     scenario.shape, path.name, summary.cache, "-", "-", "0", "-", "-", "", "",
                remarks_of(summary)};
  if (values.empty()) {
    row.headline = why_no_number(path, scenario, summary);
    row.cache = "";
    return row;
  }
  row.headline = loaded_text(summary, scenario) + headline_text(median(values), scenario);
  row.free_memory = free_memory_text(summary);
  row.range = range_of(summary, scenario);
  row.rounds = std::to_string(values.size());
  if (!summary.bins.empty()) {
    row.latency =
        latency_text(percentile(summary.bins, 50)) + " / " + latency_text(percentile(summary.bins, 99));
  }
  row.cpu = small_number(summary.cpu_per_gb);
  row.ratio = ratio_to_baseline(record, path, scenario);
  return row;
}

}  // namespace

std::vector<std::string> remarks_of(const Summary& summary) {
  std::vector<std::string> remarks = summary.reasons;
  if (!remarks.empty() && !summary.rates.empty()) remarks[0] = "not every round is valid: " + remarks[0];
  remarks.insert(remarks.end(), summary.cautions.begin(), summary.cautions.end());
  return remarks;
}

std::string why_no_number(const PathRecord& path, const ScenarioRecord& scenario, const Summary& summary) {
  if (summary.status == CellStatus::Invalid) return "invalid";
  if (scenario.writes && path.unusable.empty() && !path.read_only_reason.empty()) return "read-only";
  return "not measured";
}

std::string rounds_text(const Record& record) {
  const std::string fewest = std::to_string(record.rounds);
  return record.max_rounds > record.rounds ? fewest + " to " + std::to_string(record.max_rounds) : fewest;
}

std::string ratio_to_baseline(const Record& record, const PathRecord& path, const ScenarioRecord& scenario) {
  const PathRecord& baseline = record.paths[baseline_of(record)];
  if (baseline.name == path.name || !is_same_work(path, baseline, scenario.id)) return {};
  const Summary base = summarize(record, baseline.name, scenario.id);
  const Summary summary = summarize(record, path.name, scenario.id);
  if (base.headline.empty() || summary.headline.empty()) return {};
  return ratio_text(compare_summaries(base, summary), as_printed(median(summary.headlines()), scenario) /
                                                          as_printed(median(base.headlines()), scenario));
}

std::vector<ResultRow> result_rows(const Record& record) {
  std::vector<ResultRow> rows;
  for (const ScenarioRecord& scenario : record.scenarios) {
    for (const PathRecord& path : record.paths) rows.push_back(row_of(record, scenario, path));
  }
  return rows;
}

bool has_free_memory(const std::vector<ResultRow>& rows) {
  return std::ranges::any_of(rows, [](const ResultRow& row) { return !row.free_memory.empty(); });
}

std::vector<std::pair<std::string, std::string>> facts_of(const PathRecord& path) {
  std::vector<std::pair<std::string, std::string>> facts = {{"folder", path.path},
                                                            {"kind", to_string(path.storage.kind)}};
  if (path.mount) {
    facts.emplace_back("mounted",
                       path.mount->source + " on " + path.mount->mount_point + ", " + path.mount->type);
    facts.emplace_back("mount options", path.mount->options);
  }
  if (!path.storage.address.empty()) facts.emplace_back("target", path.storage.address);
  const NicFacts& nic = path.storage.nic;
  if (!nic.name.empty()) {
    const std::string speed = nic.bytes_per_second > 0 ? format_rate(nic.bytes_per_second) : "unknown speed";
    facts.emplace_back("network card", nic.name + ", " + speed + ", MTU " + std::to_string(nic.mtu));
  }
  for (const auto& setting : path.storage.settings) facts.push_back(setting);
  facts.emplace_back("free before", format_bytes(path.free) + " of " + format_bytes(path.size));
  if (!path.read_only_reason.empty()) facts.emplace_back("existing files were read", path.read_only_reason);
  for (const std::string& note : path.notes) facts.emplace_back("note", note);
  return facts;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Record& record) {
  const HostFacts& host = record.host;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"host", host.name + ", " + host.machine + ", " + std::to_string(host.cpus) + " CPUs, " +
                   format_bytes(host.memory_bytes) + " of memory"},
      {"kernel", host.kernel},
      {"measured with",
       record.fio.version + ", " + record.fio.engine + "; spark-stage " + record.tool_version},
      {"rounds", rounds_text(record) + " after one to warm up, " + format_duration(record.runtime) +
                     " a cell, order by seed " + std::to_string(record.seed)},
      {"files of its own", format_bytes(record.size) + " in each path that may be written"},
      {"idle host", small_number(record.idle_cpu.cpu_s_per_s) + " CPU seconds a second, taken off"},
      {"started", rfc3339(record.started) + ", took " +
                      format_duration(std::chrono::milliseconds(
                          static_cast<std::int64_t>(std::min(record.seconds, 1e9) * 1000)))}};
  if (record.rate_limit > 0)
    facts.emplace_back("held to", format_rate(static_cast<double>(record.rate_limit)) + " (--rate-limit)");
  if (record.hosts.size() > 1) facts.emplace_back("mean of the hosts", join(record.hosts, ", "));
  return facts;
}

}  // namespace spark::bench
