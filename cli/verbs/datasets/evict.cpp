#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

Result<int> evict(Context& context, const std::string& dataset, bool as_json) {
  ProgressView view(context.err, context.terminal, context.timer);
  const auto result =
      run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/evict", {}}, view);
  if (!result) return result.take_error();
  view.clear();
  if (as_json) {
    context.out << pretty(*result) << "\n";
    return 0;
  }
  const auto freed = std::max<std::int64_t>(0, get_int(*result, "freed_bytes").value_or(0));
  say(context, printable(dataset) + ": evicted, " + format_bytes(static_cast<Bytes>(freed)) + " freed");
  return 0;
}

}  // namespace

void add_evict(App& app) {
  struct Options {
    std::string dataset;
    bool as_json = false;
  };
  const auto options = std::make_shared<Options>();
  Verb verb =
      app.verb("evict", "remove a dataset's copy; refused while leased", "  spark-stage evict imagenet",
               [options](Context& context) { return evict(context, options->dataset, options->as_json); });
  verb.argument("DATASET", options->dataset, "its name, as 'spark-stage ls' has it");
  verb.flag("--json", options->as_json, "what was freed, as JSON");
}

}  // namespace spark::cli
