#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "bench/record/record_writer.hpp"
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

// Rounds of two runs are not paired, so a difference is clear only if the intervals of the two medians do not
// overlap.
void judge_difference(ComparedRow& row, const Summary& before, const Summary& after) {
  const auto a = estimate_of(before.headlines());
  const auto b = estimate_of(after.headlines());
  row.difference = Difference::TooFewRounds;
  if (!a || !b) return;
  row.ratio = b->value / a->value;
  const bool overlap = a->range.low <= b->range.high && b->range.low <= a->range.high;
  if (overlap || std::abs(*row.ratio - 1) < kNegligible) {
    row.difference = Difference::NoClearDifference;
  } else {
    row.difference = *row.ratio > 1 ? Difference::Higher : Difference::Lower;
  }
}

std::string difference_words(const ComparedRow& row) {
  switch (row.difference) {
    case Difference::TooFewRounds:
      return "too few rounds";
    case Difference::NoClearDifference:
      return "no clear difference";
    case Difference::Higher:
      return change_text(*row.ratio) + " faster";
    case Difference::Lower:
      return change_text(*row.ratio) + " slower";
  }
  return "";
}

const char* difference_word(Difference difference) {
  static constexpr const char* kWords[] = {"too_few_rounds", "no_clear_difference", "faster", "slower"};
  return kWords[static_cast<std::size_t>(difference)];
}

ComparedValue value_of(const Summary& summary, const ScenarioRecord& scenario) {
  if (summary.headline.empty())
    return {std::nullopt, summary.status == CellStatus::Invalid ? "invalid" : "not measured"};
  const double value = median(summary.headlines());
  return {value, headline_text(value, scenario)};
}

json::value object_of(const ComparedValue& value) {
  return json::object{{"value", or_null(value.number)}, {"words", value.words}};
}

std::string demand_words(const AskedFor& asked) {
  const double rate = asked.demand.bytes_per_second;
  return rate > 0 ? format_rate(rate) : "not known";
}

// Beyond the digits that a record of an earlier version kept.
bool has_other_demand(const Record& before, const Record& after) {
  const double was = before.asked.demand.bytes_per_second, is = after.asked.demand.bytes_per_second;
  return std::abs(was - is) > 0.001 * std::max(was, is);
}

// The verdicts of two runs answer one question only if all of this is the same.
std::vector<std::string> differing_questions(const Record& before, const Record& after) {
  const AskedFor &was = before.asked, &is = after.asked;
  std::vector<std::string> differences;
  if (has_other_demand(before, after))
    differences.push_back("the job's read rate was " + demand_words(was) + ", now " + demand_words(is) +
                          ", so 'demand' is not compared");
  if (was.dataset_bytes != is.dataset_bytes) differences.emplace_back("the dataset has another size");
  if (was.loads_model != is.loads_model) differences.emplace_back("only one asks about loading a model");
  if (was.epochs != is.epochs) differences.emplace_back("the number of epochs is another");
  if (was.nodes != is.nodes) differences.emplace_back("the number of nodes is another");
  if (was.checkpoint != is.checkpoint) differences.emplace_back("the checkpoint has another size");
  if (was.is_staged != is.is_staged) differences.emplace_back("only one had a staged copy");
  if (!differences.empty()) differences.emplace_back("the verdicts answer different questions");
  return differences;
}

std::string hosts_words(const Record& record) {
  return record.hosts.size() < 2 ? "one host" : join(record.hosts, ", ") + " at once";
}

std::string limit_words(const Record& record) {
  return record.rate_limit == 0 ? "no rate" : format_rate(static_cast<double>(record.rate_limit));
}

// What the runs were measured by.
void add_differing_means(const Record& before, const Record& after, std::vector<std::string>& differences) {
  const auto compare = [&](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is) differences.push_back(what + was + ", now " + is);
  };
  compare("it was measured on ", hosts_words(before), hosts_words(after));
  compare("it was held to ", limit_words(before), limit_words(after));
  compare("fio was ", before.fio.version + " with " + before.fio.engine,
          after.fio.version + " with " + after.fio.engine);
  compare("spark-stage was ", before.tool_version, after.tool_version);
}

// The folder itself: the path may be relative, or have a slash at its end.
const std::string& place_of(const PathRecord& path) {
  return path.folder.empty() ? path.path : path.folder;
}

// Other files are other work.
bool reads_other_files(const PathRecord& before, const PathRecord& after) {
  if (place_of(before) != place_of(after) ||
      before.read_only_reason.empty() != after.read_only_reason.empty())
    return true;
  return !is_same_work(before, after, "smallfiles");
}

std::vector<std::string> differing_settings(const Record& before, const Record& after) {
  std::vector<std::string> differences;
  add_differing_means(before, after, differences);
  for (const PathRecord& path : after.paths) {
    const PathRecord* then = find_path(before, path.name);
    if (then == nullptr) continue;
    const std::string was = then->mount ? then->mount->options : "";
    const std::string is = path.mount ? path.mount->options : "";
    if (was != is) differences.push_back(path.name + " was mounted " + was + ", now " + is);
    if (reads_other_files(*then, path))
      differences.push_back(path.name + " has other files or another folder");
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
  for (std::string& question : differing_questions(before, after)) differences.push_back(std::move(question));
  return differences;
}

std::string answer_of(const Record& record) {
  return join(answers_of(verdict_of(record)), " ");
}

}  // namespace

Result<RunComparison> compare_runs(const Record& before, const Record& after, bool any_host) {
  if (before.host.name != after.host.name && !any_host) {
    return fail(Errc::Refused, "the runs are of two hosts, " + before.host.name + " and " + after.host.name,
                "--any-host compares them all the same");
  }
  RunComparison comparison;
  for (const ScenarioRecord& scenario : after.scenarios) {
    if (find_scenario_record(before, scenario.id) == nullptr) continue;
    // Its rate is the demand itself.
    if (scenario.id == "demand" && has_other_demand(before, after)) continue;
    for (const PathRecord& path : after.paths) {
      if (find_path(before, path.name) == nullptr) continue;
      const Summary was = summarize(before, path.name, scenario.id);
      const Summary is = summarize(after, path.name, scenario.id);
      if (was.headline.empty() && is.headline.empty()) continue;
      ComparedRow row{
          scenario.id,  path.name, scenario.counts_ios, value_of(was, scenario), value_of(is, scenario),
          std::nullopt, {}};
      judge_difference(row, was, is);
      comparison.rows.push_back(std::move(row));
    }
  }
  if (comparison.rows.empty()) {
    return fail(Errc::Invalid, "the runs have no scenario of a path in common",
                "cells are matched by their names");
  }
  comparison.before = {before.run_id, before.started, answer_of(before)};
  comparison.after = {after.run_id, after.started, answer_of(after)};
  comparison.other_settings = differing_settings(before, after);
  return comparison;
}

std::string text_of(const RunComparison& comparison) {
  const ComparedRun& before = comparison.before;
  const ComparedRun& after = comparison.after;
  std::vector<std::vector<std::string>> rows = {
      {"SCENARIO", "PATH", before.run_id.substr(0, 16), after.run_id.substr(0, 16), "DIFFERENCE"}};
  for (const ComparedRow& row : comparison.rows) {
    rows.push_back({row.scenario, row.path, row.before.words, row.after.words, difference_words(row)});
  }
  std::string text = wrapped(before.run_id + " (" + rfc3339(before.started) + ") and " + after.run_id + " (" +
                                 rfc3339(after.started) + ")",
                             2) +
                     "\n" + in_columns(rows) + "\n";
  const std::string settings = join(comparison.other_settings, "; ");
  if (!settings.empty()) text += wrapped("Not only the time differs: " + settings + ".", 2);
  text += wrapped("Before: " + before.answer, 2);
  text += wrapped("After:  " + after.answer, 2);
  return text;
}

json::object to_json(const RunComparison& comparison) {
  const auto run = [](const ComparedRun& one) {
    return json::object{{"run_id", printable(one.run_id)},
                        {"started", rfc3339(one.started)},
                        {"verdict", printable(one.answer)}};
  };
  json::array rows;
  for (const ComparedRow& row : comparison.rows) {
    rows.push_back(json::object{{"scenario", printable(row.scenario)},
                                {"path", printable(row.path)},
                                {"unit", row.counts_ios ? "ios_per_second" : "bytes_per_second"},
                                {"before", object_of(row.before)},
                                {"after", object_of(row.after)},
                                {"ratio", or_null(row.ratio)},
                                {"difference", difference_word(row.difference)}});
  }
  return {{"before", run(comparison.before)},
          {"after", run(comparison.after)},
          {"results", std::move(rows)},
          {"other_differences", FieldWriter::value_of(comparison.other_settings)}};
}

}  // namespace spark::bench
