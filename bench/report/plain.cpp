#include "base/text.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

// A cell of a Markdown table: what would end it is escaped.
std::string md(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '|' || c == '\\' || c == '`' || c == '<' || c == '*' || c == '_' || c == '[') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string md_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + md(cell) + " |";
  return line + "\n";
}

std::string quoted(const std::string& text) {
  std::string safe = printable(text);
  // A spreadsheet takes a leading = + - @ for a formula.
  if (!safe.empty() && std::string_view("=+-@").find(safe.front()) != std::string_view::npos)
    safe.insert(0, "'");
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string doubled;
  for (const char c : safe) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
  return "\"" + doubled + "\"";
}

std::string decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

template <class Number>
std::string optional_text(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "";
}

}  // namespace

std::string markdown(const Record& record) {
  std::string text = "# spark-stage bench " + md(record.run_id) + "\n\n";
  if (record.interrupted) text += "**Interrupted: what was measured until then.**\n\n";
  for (const std::string& sentence : sentences_of(verdict_of(record))) text += "- " + md(sentence) + "\n";
  text += "\n" + md_row({"scenario", "path", "read from", "median", "95 %", "rounds", "p50 / p99", "CPU s/GB",
                         "ratio", "remarks"});
  text += "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ResultRow& row : result_rows(record)) {
    text += md_row({row.scenario + ", " + row.shape, row.path, row.cache, row.headline, row.range, row.rounds,
                    row.latency, row.cpu, row.ratio, row.remarks});
  }
  text += "\n## What was measured\n\n";
  for (const auto& [name, words] : facts_of(record)) text += "- " + md(name) + ": " + md(words) + "\n";
  for (const PathRecord& path : record.paths) {
    text += "\n### " + md(path.name) + "\n\n";
    for (const auto& [name, words] : facts_of(record, path))
      text += "- " + md(name) + ": " + md(words) + "\n";
  }
  if (!record.warnings.empty()) text += "\n## Warnings\n\n";
  for (const std::string& warning : record.warnings) text += "- " + md(warning) + "\n";
  return text;
}

std::string csv(const Record& record) {
  std::string text =
      "run,host,path,kind,scenario,cache,round,order,discarded,status,bytes,ios,seconds,bytes_per_second,p50_"
      "ns,p99_ns,"
      "origin_bytes,nic_bytes,host_cpu_s,kernel_threads_s,reasons\n";
  for (const Cell& cell : record.cells) {
    const PathRecord* path = find_path(record, cell.path);
    const ScenarioRecord* scenario = find_scenario_record(record, cell.scenario);
    const double rate = cell.seconds > 0 ? static_cast<double>(cell.bytes) / cell.seconds : 0;
    const std::vector<std::string> fields = {quoted(record.run_id),
                                             quoted(record.host.name),
                                             quoted(cell.path),
                                             path == nullptr ? "" : to_string(path->storage.kind),
                                             quoted(cell.scenario),
                                             scenario == nullptr ? "" : to_string(scenario->cache),
                                             std::to_string(cell.round),
                                             std::to_string(cell.order),
                                             cell.round == 0 ? "yes" : "no",
                                             to_string(cell.status),
                                             std::to_string(cell.bytes),
                                             std::to_string(cell.ios),
                                             decimal(cell.seconds),
                                             decimal(rate),
                                             optional_text(percentile(cell.bins, 50)),
                                             optional_text(percentile(cell.bins, 99)),
                                             optional_text(cell.origin.bytes),
                                             optional_text(cell.origin.nic_bytes),
                                             cell.cpu ? decimal(cell.cpu->busy) : "",
                                             cell.cpu ? decimal(cell.cpu->kernel_threads) : "",
                                             quoted(join(cell.reasons, "; "))};
    text += join(fields, ",") + "\n";
  }
  return text;
}

}  // namespace spark::bench
