#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct EvictOptions {
  std::vector<std::string> datasets;
  bool as_json = false;
};

Result<int> evict(Context& context, const EvictOptions& options) {
  json::array evicted;
  const int status = for_each_item(context, options.datasets, [&](const std::string& dataset) -> Result<> {
    auto result = run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/evict", {}});
    if (!result) return result.take_error();
    if (!options.as_json)
      say(context,
          printable(dataset) + ": evicted, " + format_bytes(get_count(*result, "freed_bytes")) + " freed");
    (*result)["name"] = dataset;
    evicted.push_back(std::move(*result));
    return {};
  });
  if (!options.as_json) return status;
  // One dataset's answer is the object itself, as it was before there could be several.
  const bool is_one = options.datasets.size() == 1;
  if (is_one && evicted.empty()) return status;
  show_json(context, is_one ? evicted.front() : json::object{{"datasets", std::move(evicted)}});
  return status;
}

}  // namespace

void add_evict(App& app) {
  const auto options = std::make_shared<EvictOptions>();
  Verb verb = app.verb("evict", "remove datasets' copies; refused while leased",
                       "  spark-stage evict imagenet\n"
                       "  spark-stage evict imagenet models",
                       [options](Context& context) { return evict(context, *options); });
  verb.argument("DATASET", options->datasets, "their names, as `spark-stage ls` has them");
  verb.flag("--json", options->as_json, "the result, as JSON");
}

}  // namespace spark::cli
