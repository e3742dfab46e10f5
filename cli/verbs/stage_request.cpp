#include "cli/verbs/stage_request.hpp"

#include "base/text.hpp"
#include "cli/format/screens.hpp"
#include "cli/job.hpp"

namespace spark::cli {

Request stage_request(const std::vector<std::string>& datasets, const Lease& lease) {
  json::object body;
  json::array& names = body["datasets"].emplace_array();
  for (const std::string& dataset : datasets) names.emplace_back(dataset);
  if (lease.time) body["lease_s"] = std::chrono::ceil<std::chrono::seconds>(*lease.time).count();
  if (lease.hold) body["hold"] = true;
  return {"POST", "/v1/stagings", json::serialize(body)};
}

Result<json::object> stage_and_tell(Context& context, const std::vector<std::string>& datasets,
                                    const Lease& lease) {
  ProgressView view(context);
  auto result = run_job(context, stage_request(datasets, lease), view);
  if (!result) return result;
  view.clear();
  const json::array* staged = get_array(*result, "datasets");
  for (std::size_t i = 0; staged != nullptr && i < staged->size(); ++i) {
    const json::object* dataset = (*staged)[i].if_object();
    if (dataset == nullptr) continue;
    view.note(printable(get_string(*dataset, "name").value_or("")) + ": " + staged_in_words(*dataset));
    const auto id = get_string(*dataset, "lease");
    if (id && lease.time) {
      view.note("  leased for " + format_duration(*lease.time) + "; 'spark-stage release " + printable(*id) +
                "' ends that earlier");
    }
  }
  return result;
}

Result<std::vector<StagedDataset>> staged_datasets(const json::object& result,
                                                   const std::vector<std::string>& datasets) {
  const json::array* rows = get_array(result, "datasets");
  std::vector<StagedDataset> staged;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const json::object* row = rows != nullptr && i < rows->size() ? (*rows)[i].if_object() : nullptr;
    const auto path = row != nullptr ? get_string(*row, "path") : std::nullopt;
    if (!path || path->empty()) {
      return fail(Errc::Failed,
                  "spark-staged says it is done, and names no path for '" + printable(datasets[i]) + "'",
                  "are spark-stage and spark-staged of one version?");
    }
    staged.push_back({datasets[i], *path, get_string(*row, "lease").value_or("")});
  }
  return staged;
}

}  // namespace spark::cli
