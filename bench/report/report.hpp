// What people read of a run. Everything is made from records alone, so any of it can be made again later.
// Text that comes from a record is shown safely wherever it came from.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "bench/record/record.hpp"
#include "bench/report/run_folder.hpp"

namespace spark::bench {

// One path in one scenario, as words.
struct ResultRow {
  std::string scenario, shape, path, cache, headline, range, rounds, latency, cpu, ratio;
  std::vector<std::string> remarks;  // why it is no result, and how to read it
};
std::vector<ResultRow> result_rows(const Record& record);

// "0.39x": the path's median by the baseline's, as both are printed; "≈" before it where the rounds, pair by
// pair, show no clear difference. Empty for the baseline itself, and for what does not compare.
std::string ratio_to_baseline(const Record& record, const PathRecord& path, const ScenarioRecord& scenario);

// What was measured where: pairs of a name and its words.
std::vector<std::pair<std::string, std::string>> facts_of(const Record& record, const PathRecord& path);
std::vector<std::pair<std::string, std::string>> facts_of(const Record& record);

// Schema "spark-stage-bench/2": rates in bytes per second, sizes in bytes, latencies in ns, durations in s.
// The members "summary" and "verdict" are derived from the others.
json::object to_json(const Record& record);

// The comparison for a terminal: at most 80 columns (paths in groups of three), with a newline at its end.
std::string text_table(const Record& record);

// The record as the content of a .json file, with a newline at its end.
std::string json_text(const Record& record);

std::string markdown(const Record& record);

// One file with charts, for light and dark screens of any width; it asks nothing of any network.
std::string html_page(const Record& record);

// Charts as SVG elements for html_page, drawn by gnuplot; Unsupported when there is none.
struct Charts {
  std::string break_even,
      narrow_break_even;  // for the page's whole width, and for a telephone; empty: no rates
  std::vector<std::pair<std::string, std::string>> scenarios;  // title and picture: every round as a dot
};
Result<Charts> draw_charts(const Record& record);

struct ComparedRun {
  std::string run_id;
  WallTime started;
  std::string answer;  // the first sentence of its verdict
};
struct ComparedValue {
  std::optional<double> number;  // the median, in bytes or I/Os per second; none: `words` says why
  std::string words;
};
struct ComparedRow {
  std::string scenario, path;
  bool counts_ios = false;  // I/Os per second, not bytes
  ComparedValue before, after;
  std::optional<double> ratio;  // after by before; none: too few rounds
  Difference difference = Difference::TooFewRounds;
};
// Two runs, scenario by scenario and path by path.
struct RunComparison {
  ComparedRun before, after;
  std::vector<ComparedRow> rows;
  std::vector<std::string> other_settings;  // what differs beside the time
};

// Refused when the hosts differ, unless `any_host`; Invalid when they have nothing in common.
Result<RunComparison> compare_runs(const Record& before, const Record& after, bool any_host);
std::string text_of(const RunComparison& comparison);
json::object to_json(const RunComparison& comparison);

// Several hosts that read at once: what each got, and all together.
Result<std::string> merge_runs(const std::vector<Record>& records);

std::string list_of_runs(const std::vector<RunEntry>& runs);
json::object to_json(const std::vector<RunEntry>& runs);

// At most 80 columns a line, all but the first line indented.
std::string wrapped(const std::string& text, std::size_t indent);

// Columns of one width each, two spaces apart.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace spark::bench
