// Reports of a run for users. All are made from records alone, so they can be recreated later. Text from a
// record is escaped before it is shown, wherever it came from.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "bench/record/record.hpp"
#include "bench/report/run_folder.hpp"

namespace spark::bench {

// One path in one scenario, formatted.
struct ResultRow {
  std::string scenario, shape, path, cache, headline, range, rounds, latency, cpu, ratio;
  std::string free_memory;           // after a model was loaded; empty otherwise
  std::vector<std::string> remarks;  // why it is invalid, and how to interpret it
};
std::vector<ResultRow> result_rows(const Record& record);
inline constexpr const char* kFreeMemory = "free memory after loading";  // a column, if it has text
bool has_free_memory(const std::vector<ResultRow>& rows);

// Why a summary has invalid rounds or none, and its cautions. For a number of other rounds, as such.
std::vector<std::string> remarks_of(const Summary& summary);
// In place of a number: "invalid", "read-only", "not measured".
std::string why_no_number(const PathRecord& path, const ScenarioRecord& scenario, const Summary& summary);
// "5", or "5 to 9"
std::string rounds_text(const Record& record);

// "0.39x": the path's median divided by the baseline's, both as printed; preceded by "≈" if the rounds,
// compared in pairs, show no clear difference; followed by "?" if they are too few. Empty for the baseline
// itself, and if the two are not comparable.
std::string ratio_to_baseline(const Record& record, const PathRecord& path, const ScenarioRecord& scenario);

// Facts about a path and its storage, as pairs of name and text.
std::vector<std::pair<std::string, std::string>> facts_of(const PathRecord& path);
std::vector<std::pair<std::string, std::string>> facts_of(const Record& record);

// Schema "spark-stage-bench/2": rates in bytes per second, sizes in bytes, latencies in ns, durations in s.
// The members "summary" and "verdict" are derived from the others.
json::object to_json(const Record& record);

// The comparison for a terminal: at most 80 columns (paths in groups of three), ends with a newline.
std::string text_table(const Record& record);

// The record as the content of a .json file, ends with a newline.
std::string json_text(const Record& record);

std::string markdown(const Record& record);

// A single file with charts, for light and dark screens of any width. It makes no network request.
std::string html_page(const Record& record);

// Charts as SVG elements for html_page(), drawn by gnuplot; Unsupported if gnuplot is missing.
struct Charts {
  std::string break_even,
      narrow_break_even;  // for the page's whole width, and for a phone; empty: no rates
  std::vector<std::pair<std::string, std::string>> scenarios;  // title and picture, with a dot for every
                                                               // round
};
Result<Charts> draw_charts(const Record& record);

struct ComparedRun {
  std::string run_id;
  WallTime started;
  std::string answer;  // its verdict, with the cautions
};
struct ComparedValue {
  std::optional<double> number;  // the median, in bytes or I/Os per second; no value: see `words` for the
                                 // reason
  std::string words;
};
struct ComparedRow {
  std::string scenario, path;
  bool counts_ios = false;  // I/Os per second, not bytes
  ComparedValue before, after;
  std::optional<double> ratio;  // after / before; no value: too few rounds
  Difference difference = Difference::TooFewRounds;
};
// Two runs compared by scenario and path.
struct RunComparison {
  ComparedRun before, after;
  std::vector<ComparedRow> rows;
  std::vector<std::string> other_settings;  // differences other than the time
};

// Refused if the hosts differ, unless `any_host`; Invalid if the runs have nothing in common.
Result<RunComparison> compare_runs(const Record& before, const Record& after, bool any_host);
std::string text_of(const RunComparison& comparison);
json::object to_json(const RunComparison& comparison);

// Several hosts that read at the same time: the rate of each, and the total.
Result<std::string> merge_runs(const std::vector<Record>& records);

std::string list_of_runs(const std::vector<RunEntry>& runs);
json::object to_json(const std::vector<RunEntry>& runs);

// Wraps at 80 columns; indents all lines except the first.
std::string wrapped(const std::string& text, std::size_t indent);

// Columns of equal width, two spaces apart.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace spark::bench
