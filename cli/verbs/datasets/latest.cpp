#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct LatestOptions {
  std::string output;
  bool as_json = false;
};

// Where it is on this host; from the volume it is staged first.
Result<std::string> path_of_latest(Context& context, const json::object& latest) {
  if (const auto local = get_string(latest, "local")) return *local;
  StageOptions options;
  options.datasets = {get_string(latest, "dataset").value_or("")};
  const auto result = stage_and_tell(context, options);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, options.datasets);
  if (!staged) return staged.take_error();
  return staged->front().path;
}

Result<int> latest(Context& context, const LatestOptions& options) {
  auto found =
      call(*context.client, {"GET", "/v1/outputs/" + percent_encoded(options.output) + "/latest", {}});
  if (!found) return found.take_error();
  context.catch_interrupts();
  const auto path = path_of_latest(context, *found);
  if (!path) return path.take_error();
  if (options.as_json) {
    (*found)["path"] = *path;
    context.out << pretty(*found) << "\n";
  } else {
    context.out << *path << "\n";
  }
  return 0;
}

}  // namespace

void add_latest(App& app) {
  const auto options = std::make_shared<LatestOptions>();
  Verb verb = app.verb("latest", "the path of an output's newest complete checkpoint",
                       "  spark-stage latest run7\n"
                       "  python train.py --resume \"$(spark-stage latest run7)\"\n\n"
                       "The one on this host, if it is complete and the newest; otherwise the one on the\n"
                       "volume, which is staged first.",
                       [options](Context& context) { return latest(context, *options); });
  verb.argument("OUTPUT", options->output, "its name in the configuration");
  verb.flag("--json", options->as_json, "its name and path, as JSON");
}

}  // namespace spark::cli
