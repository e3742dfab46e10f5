#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "bench/record/overlap.hpp"
#include "bench/record/words.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

// `apart` gets the scenario if the hosts did not measure it at once.
void add(const std::vector<Record>& records, const ScenarioRecord& scenario, const PathRecord& path,
         std::vector<std::vector<std::string>>& rows, std::vector<std::string>& apart) {
  // Each host has its own local drive, so there is nothing to add up.
  if (!is_remote(path.storage.kind)) return;
  std::vector<double> medians;
  std::set<unsigned> rounds;
  double together = 0;
  for (const Record& record : records) {
    const Summary summary = summarize(record, path.name, scenario.id);
    if (summary.headline.empty()) continue;
    medians.push_back(median(summary.headlines()));
    together += medians.back();
    rounds.merge(valid_rounds(record, path.name, scenario.id));
  }
  if (medians.empty()) return;
  const double overlap = overlap_of(records, path.name, scenario.id, rounds);
  if (medians.size() > 1 && overlap < kEnoughOverlap) apart.push_back(scenario.id + " of " + path.name);
  rows.push_back({scenario.id, path.name, std::to_string(medians.size()), headline_text(together, scenario),
                  headline_text(median(medians), scenario),
                  headline_text(*std::min_element(medians.begin(), medians.end()), scenario),
                  percent_text(overlap)});
}

std::string hosts_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& record : records) names.push_back(record.host.name);
  return join(names, ", ");
}

bool is_many_targets(const std::vector<Record>& records) {
  for (const PathRecord& path : records.front().paths) {
    std::set<std::string> addresses;
    for (const Record& record : records) {
      if (const PathRecord* same = find_path(record, path.name)) addresses.insert(same->storage.address);
    }
    if (addresses.size() > 1) return true;
  }
  return false;
}

}  // namespace

Result<std::string> merge_runs(const std::vector<Record>& records) {
  if (records.size() < 2) {
    return fail(Errc::Invalid, "one record is no picture of several hosts",
                "give the records of two hosts or more");
  }
  std::set<std::string> ids;
  for (const Record& record : records) {
    if (!ids.insert(record.run_id + record.host.name).second) {
      return fail(Errc::Invalid, "the record " + record.run_id + " was given twice",
                  "each host has one of its own");
    }
  }
  std::vector<std::string> apart;
  std::vector<std::vector<std::string>> rows = {
      {"SCENARIO", "PATH", "HOSTS", "TOGETHER", "EACH", "SLOWEST", "AT ONCE"}};
  for (const ScenarioRecord& scenario : records.front().scenarios) {
    for (const PathRecord& path : records.front().paths) add(records, scenario, path, rows, apart);
  }
  std::string text =
      std::to_string(records.size()) + " records of " + hosts_of(records) + "\n\n" + in_columns(rows) + "\n";
  if (!apart.empty()) {
    text +=
        wrapped("Not at once: " + join(apart, ", ") +
                    ". The sum is then of hosts that did not compete. Start them together, with one --seed, "
                    "the same paths and sizes, and a longer --runtime.",
                2);
  }
  if (is_many_targets(records)) {
    text +=
        wrapped("Paths of one name are taken for one target, but their targets have different addresses.", 2);
  }
  return text;
}

}  // namespace spark::bench
