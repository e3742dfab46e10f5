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

// Each of them, whatever becomes of the others; the exit status of the first that could not be evicted.
Result<int> evict(Context& context, const EvictOptions& options) {
  ProgressView view(context.err, context.terminal, context.timer);
  int status = 0;
  json::array evicted;
  for (const std::string& dataset : options.datasets) {
    if (context.stop) break;
    auto result = run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/evict", {}}, view);
    view.clear();
    if (!result) {
      const int failed = report(context, result.error());
      if (status == 0) status = failed;
      continue;
    }
    const auto freed = get_count(*result, "freed_bytes");
    (*result)["name"] = dataset;
    evicted.push_back(std::move(*result));
    if (options.as_json) continue;
    say(context, printable(dataset) + ": evicted, " + format_bytes(freed) + " freed");
  }
  if (!options.as_json) return status;
  // One dataset's answer is the object itself, as it was before there could be several.
  const bool is_one = options.datasets.size() == 1;
  if (is_one && evicted.empty()) return status;
  context.out << pretty(is_one ? evicted.front() : json::object{{"datasets", std::move(evicted)}}) << "\n";
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
