#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

// The policy allows only this page's own style, so the page can make no network request.
constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mute: #59636e; }
@media (prefers-color-scheme: dark) { :root { --mute: #9aa4af; } body { background: #0d1117; color: #e6edf3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.2rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } h3 { font-size: 1rem; margin: 0; }
.mute { color: var(--mute); } .answer { font-size: 1.35rem; font-weight: 600; margin: 1rem 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.card { border: 1px solid var(--line); border-radius: .6rem; padding: .8rem; min-width: 0; }
.card svg { display: block; width: 100%; height: auto; max-width: 34rem; } .wide svg { max-width: none; }
figure { margin: 0; } .narrow { display: none; }
@media screen and (max-width: 44rem) { .wide { display: none; } .narrow { display: block; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .5rem 0 0; }
dt { color: var(--mute); } dd { margin: 0; min-width: 0; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .5rem; vertical-align: top; }
th { color: var(--mute); font-weight: 500; } tr + tr td { border-top: 1px solid var(--line); }
td:nth-child(4) { font-weight: 600; } td:nth-child(2), td:nth-child(3), td:nth-child(4), td:nth-child(7), td:nth-child(9) { white-space: nowrap; }
td, dd { min-width: 0; }
@media screen and (max-width: 60rem) {
  thead { display: none; } tr { display: block; border-top: 1px solid var(--line); padding: .5rem 0; }
  td { display: grid; grid-template-columns: 7.5rem 1fr; padding: .05rem 0; border: 0 !important; white-space: normal !important; }
  td::before { content: attr(data-name); color: var(--mute); font-weight: 400; } td:empty { display: none; }
  td:first-child { display: block; font-weight: 600; } td:first-child::before { content: none; }
}
@page { margin: 11mm; }
@media print {
  :root { color-scheme: light; --mute: #59636e; }
  body { background: #fff; color: #000; max-width: none; padding: 0; font-size: 7pt; line-height: 1.25; }
  h1, h2, h3 { font-size: 9pt; break-after: avoid; } h2 { margin: .6rem 0 .2rem; } p { margin: .2rem 0; }
  .answer { font-size: 12pt; margin: .4rem 0; } .wide svg { max-height: 56mm; }
  .grid { grid-template-columns: repeat(4, 1fr); gap: .4rem; } .card { padding: .3rem; break-inside: avoid; }
  th, td { padding: .05rem .3rem; } tr { break-inside: avoid; } td { line-height: 1.15; } dl { display: block; margin: 0; } dt, dd { display: inline; } dt::after { content: ": "; } dd::after { content: "\A"; white-space: pre; }
}
</style>
)";

std::string html(const std::string& text) {
  constexpr std::array kEntities = {std::pair{'&', "&amp;"}, std::pair{'<', "&lt;"}, std::pair{'>', "&gt;"},
                                    std::pair{'"', "&quot;"}, std::pair{'\'', "&#39;"}};
  std::string safe;
  for (const char c : printable(text)) {
    const auto* const entity = std::ranges::find(kEntities, c, &std::pair<char, const char*>::first);
    safe += entity == kEntities.end() ? std::string(1, c) : entity->second;
  }
  return safe;
}

std::string element(const std::string& tag, const std::string& text) {
  return "<" + tag + ">" + html(text) + "</" + tag + ">\n";
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string list = "<dl>\n";
  for (const auto& [name, words] : pairs) list += "<dt>" + html(name) + "</dt><dd>" + html(words) + "</dd>\n";
  return list + "</dl>\n";
}

std::string verdict(const Record& record) {
  std::string text;
  const auto sentences = sentences_of(verdict_of(record));
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    text += "<p" + std::string(i == 0 ? " class=\"answer\"" : "") + ">" + html(sentences[i]) + "</p>\n";
  }
  return text;
}

std::string charts(const Record& record) {
  const auto drawn = draw_charts(record);
  if (!drawn) return element("p", "There are no charts: " + drawn.error().message());
  std::string text;
  if (!drawn->break_even.empty()) {
    text += "<h2>Hours by epochs</h2>\n<figure class=\"card\"><div class=\"wide\">" + drawn->break_even +
            "</div><div class=\"narrow\">" + drawn->narrow_break_even +
            "</div><figcaption class=\"mute\">Solid: staged first. Dashed: read directly. The bands are 95 % "
            "intervals.</figcaption></figure>\n";
  }
  text +=
      "<h2>Every round as a dot</h2>\n<p class=\"mute\">Grey: the round to warm up, in no figure. Orange: "
      "the "
      "median. Green: the job's read rate.</p>\n<div class=\"grid\">\n";
  for (const auto& [title, picture] : drawn->scenarios) {
    text += "<div class=\"card\">" + element("h3", title) + picture + "</div>\n";
  }
  return text + "</div>\n";
}

// Remarks are numbered: each appears once below the table, even if it applies to several rows.
std::string marks_of(const std::vector<std::string>& remarks, std::vector<std::string>& known) {
  std::string marks;
  for (const std::string& remark : remarks) {
    auto at = std::find(known.begin(), known.end(), remark);
    if (at == known.end()) at = known.insert(known.end(), remark);
    marks += (marks.empty() ? "[" : " [") + std::to_string(at - known.begin() + 1) + "]";
  }
  return marks;
}

std::string remarks_list(const std::vector<std::string>& remarks) {
  std::string text;
  for (std::size_t i = 0; i < remarks.size(); ++i) {
    text += element("p", "[" + std::to_string(i + 1) + "] " + remarks[i]);
  }
  return text;
}

std::string table(const Record& record) {
  const std::vector<ResultRow> rows = result_rows(record);
  const bool has_memory = has_free_memory(rows);
  std::vector<std::string> names = {"scenario", "path",      "read from", "median", "95 % interval",
                                    "rounds",   "p50 / p99", "CPU s/GB",  "ratio",  "remarks"};
  if (has_memory) names.insert(names.end() - 1, kFreeMemory);
  std::string text = "<h2>Results</h2>\n<table>\n<thead><tr>";
  for (const std::string& name : names) text += "<th>" + html(name) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  std::vector<std::string> remarks;
  for (const ResultRow& row : rows) {
    std::vector<std::string> cells = {row.scenario + ", " + row.shape,
                                      row.path,
                                      row.cache,
                                      row.headline,
                                      row.range,
                                      row.rounds,
                                      row.latency,
                                      row.cpu,
                                      row.ratio,
                                      marks_of(row.remarks, remarks)};
    if (has_memory) cells.insert(cells.end() - 1, row.free_memory);
    text += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += "<td data-name=\"" + html(names[i]) + "\">" + html(cells[i]) + "</td>";
    }
    text += "</tr>\n";
  }
  const std::string baseline = record.paths.empty() ? "" : record.paths[baseline_of(record)].name;
  return text + "</tbody>\n</table>\n" + remarks_list(remarks) +
         element("p",
                 "The ratio is the median by that of " + baseline +
                     "; ≈: round by round there is no clear difference; ?: too few rounds to tell. CPU: "
                     "seconds of the whole host for a "
                     "gigabyte, kernel threads included, an idle host's taken off; -: no more than that.");
}

std::string measured(const Record& record) {
  std::string text = "<h2>Measurement setup</h2>\n<div class=\"grid\">\n<div class=\"card\">" +
                     facts(facts_of(record)) + "</div>\n";
  for (const PathRecord& path : record.paths) {
    text += "<div class=\"card\">" + element("h3", path.name) + facts(facts_of(path)) + "</div>\n";
  }
  return text + "</div>\n";
}

}  // namespace

std::string html_page(const Record& record) {
  std::string page = kHead;
  page += "<title>spark-stage bench " + html(record.run_id) + "</title>\n</head>\n<body>\n";
  page += element("h1", "spark-stage bench " + record.run_id);
  page += "<p class=\"mute\">" + html(record.host.name) + "</p>\n";
  if (record.interrupted) page += element("p", "Interrupted: only the measurements until then.");
  if (record.rate_limit > 0)
    page += element("p", "Held to " + format_rate(static_cast<double>(record.rate_limit)) +
                             " (--rate-limit): the paths may be faster.");
  page += verdict(record) + charts(record) + table(record);
  if (!record.warnings.empty()) page += element("h2", "Warnings");
  for (const std::string& warning : record.warnings) page += element("p", warning);
  page += measured(record);
  page += element("h2", "Not measured");
  page += element(
      "p",
      "Whether a target served from its own memory, the load from other clients, and the speed at another "
      "hour. Measure again then, and compare: spark-stage bench compare A B.");
  return page + "</body>\n</html>\n";
}

}  // namespace spark::bench
