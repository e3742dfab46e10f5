#include "base/text.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

const char* state_of(const RunEntry& run) {
  if (!run.problem.empty()) return "unreadable";
  return run.record.interrupted ? "interrupted" : "complete";
}

}  // namespace

std::string list_of_runs(const std::vector<RunEntry>& runs) {
  if (runs.empty()) return "No run is kept here yet.\n";
  std::vector<std::vector<std::string>> rows = {{"RUN", "HOST", "PATHS", "STATE"}};
  for (const RunEntry& run : runs) {
    if (!run.problem.empty()) {
      rows.push_back({printable(run.id), "-", "-", state_of(run)});
      continue;
    }
    std::vector<std::string> names;
    for (const PathRecord& path : run.record.paths) names.push_back(path.name);
    std::string paths = join(names, " ");
    if (paths.size() > 32) paths = std::to_string(names.size()) + " paths";
    rows.push_back({printable(run.id), run.record.host.name.substr(0, 16), paths, state_of(run)});
  }
  return in_columns(rows);
}

json::object to_json(const std::vector<RunEntry>& runs) {
  json::array array;
  for (const RunEntry& run : runs) {
    json::object object{{"run_id", printable(run.id)}, {"state", state_of(run)}};
    if (!run.problem.empty()) {
      object["problem"] = printable(run.problem);
    } else {
      json::array paths;
      for (const PathRecord& path : run.record.paths) paths.emplace_back(printable(path.name));
      object["host"] = printable(run.record.host.name);
      object["started"] = rfc3339(run.record.started);
      object["paths"] = std::move(paths);
    }
    array.push_back(std::move(object));
  }
  return {{"runs", std::move(array)}};
}

}  // namespace spark::bench
