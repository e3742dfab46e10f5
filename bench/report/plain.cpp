#include "base/text.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

// A cell of a Markdown table, with its delimiters escaped.
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

}  // namespace

std::string markdown(const Record& record) {
  std::string text = "# spark-stage bench " + md(record.run_id) + "\n\n";
  if (record.interrupted) text += "**Interrupted: only the measurements until then.**\n\n";
  if (record.rate_limit > 0)
    text += "**Held to " + md(format_rate(static_cast<double>(record.rate_limit))) +
            " (--rate-limit): the paths may be faster.**\n\n";
  for (const std::string& sentence : sentences_of(verdict_of(record))) text += "- " + md(sentence) + "\n";
  const std::vector<ResultRow> rows = result_rows(record);
  const bool has_memory = has_free_memory(rows);
  const auto line = [&](std::vector<std::string> cells, const std::string& memory, const std::string& last) {
    if (has_memory) cells.push_back(memory);
    cells.push_back(last);
    return md_row(cells);
  };
  text += "\n" + line({"scenario", "path", "read from", "median", "95 %", "rounds", "p50 / p99", "CPU s/GB",
                       "ratio"},
                      kFreeMemory, "remarks");
  text += std::string("|---|---|---|---|---|---|---|---|---|") + (has_memory ? "---|" : "") + "---|\n";
  for (const ResultRow& row : rows) {
    text += line({row.scenario + ", " + row.shape, row.path, row.cache, row.headline, row.range, row.rounds,
                  row.latency, row.cpu, row.ratio},
                 row.free_memory, join(row.remarks, "; "));
  }
  text += "\n## Measurement setup\n\n";
  for (const auto& [name, words] : facts_of(record)) text += "- " + md(name) + ": " + md(words) + "\n";
  for (const PathRecord& path : record.paths) {
    text += "\n### " + md(path.name) + "\n\n";
    for (const auto& [name, words] : facts_of(path)) text += "- " + md(name) + ": " + md(words) + "\n";
  }
  if (!record.warnings.empty()) text += "\n## Warnings\n\n";
  for (const std::string& warning : record.warnings) text += "- " + md(warning) + "\n";
  return text;
}

}  // namespace spark::bench
