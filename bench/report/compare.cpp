#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "bench/record/words.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

std::string change_text(double ratio) {
  char text[64];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (ratio - 1));
  return text;
}

// Rounds of two runs are no pairs, so the intervals of the two medians have to leave each other out.
std::string difference_of(const Summary& before, const Summary& after) {
  const auto a = estimate_of(before.headlines());
  const auto b = estimate_of(after.headlines());
  if (!a || !b) return "too few rounds";
  const double ratio = b->value / a->value;
  const bool overlap = a->range.low <= b->range.high && b->range.low <= a->range.high;
  if (overlap || std::abs(ratio - 1) < 0.03) return "no clear difference";
  return change_text(ratio) + (ratio > 1 ? " faster" : " slower");
}

std::string headline(const Summary& summary, const ScenarioRecord& scenario) {
  if (summary.headline.empty()) return summary.status == CellStatus::Invalid ? "invalid" : "not measured";
  return headline_text(median(summary.headlines()), scenario);
}

std::string differing_settings(const Record& before, const Record& after) {
  std::vector<std::string> differences;
  for (const PathRecord& path : after.paths) {
    const PathRecord* then = find_path(before, path.name);
    if (then == nullptr) continue;
    const std::string was = then->mount ? then->mount->options : "";
    const std::string is = path.mount ? path.mount->options : "";
    if (was != is) differences.push_back(path.name + " was mounted " + was + ", now " + is);
    if (then->storage.settings != path.storage.settings)
      differences.push_back(path.name + " has other settings");
    if (!(then->storage.nic == path.storage.nic))
      differences.push_back(path.name + " has another network card or MTU");
  }
  if (before.host.kernel != after.host.kernel) {
    differences.push_back("the kernel was " + before.host.kernel + ", now " + after.host.kernel);
  }
  if (before.size != after.size || before.runtime != after.runtime) {
    differences.emplace_back("sizes or runtimes are not the same");
  }
  return join(differences, "; ");
}

}  // namespace

Result<std::string> compare_runs(const Record& before, const Record& after, bool any_host) {
  if (before.host.name != after.host.name && !any_host) {
    return fail(Errc::Refused, "the runs are of two hosts, " + before.host.name + " and " + after.host.name,
                "--any-host compares them all the same");
  }
  std::vector<std::vector<std::string>> rows = {
      {"SCENARIO", "PATH", before.run_id.substr(0, 16), after.run_id.substr(0, 16), "DIFFERENCE"}};
  for (const ScenarioRecord& scenario : after.scenarios) {
    if (find_scenario_record(before, scenario.id) == nullptr) continue;
    for (const PathRecord& path : after.paths) {
      if (find_path(before, path.name) == nullptr) continue;
      const Summary was = summarize(before, path.name, scenario.id);
      const Summary is = summarize(after, path.name, scenario.id);
      if (was.headline.empty() && is.headline.empty()) continue;
      rows.push_back(
          {scenario.id, path.name, headline(was, scenario), headline(is, scenario), difference_of(was, is)});
    }
  }
  if (rows.size() == 1) {
    return fail(Errc::Invalid, "the runs have no scenario of a path in common",
                "cells are matched by their names");
  }
  std::string text = wrapped(before.run_id + " (" + rfc3339(before.started) + ") and " + after.run_id + " (" +
                                 rfc3339(after.started) + ")",
                             2) +
                     "\n" + in_columns(rows) + "\n";
  const std::string settings = differing_settings(before, after);
  if (!settings.empty()) text += wrapped("Not only the time differs: " + settings + ".", 2);
  text += wrapped("Before: " + sentences_of(verdict_of(before)).front(), 2);
  text += wrapped("After:  " + sentences_of(verdict_of(after)).front(), 2);
  return text;
}

}  // namespace spark::bench
