#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/screens.hpp"

namespace spark::cli {
namespace {

struct LsOptions {
  bool as_json = false, fleet = false;
};

// 6, as for other data that does not match: hosts have a dataset with different hashes.
Result<int> ls_fleet(Context& context, bool as_json) {
  const auto answer = call(*context.client, {"GET", "/v1/fleet/datasets", {}});
  if (!answer) return answer.take_error();
  if (as_json) {
    show_json(context, *answer);
  } else {
    print_fleet_datasets(context.out, context.terminal, *answer);
  }
  for (const json::object& dataset : objects_in(*answer, "datasets")) {
    if (!get_bool(dataset, "same").value_or(true)) return exit_status(Errc::Mismatch);
  }
  return 0;
}

Result<int> ls(Context& context, const LsOptions& options) {
  if (options.fleet) return ls_fleet(context, options.as_json);
  const auto answer = call(*context.client, {"GET", "/v1/datasets", {}});
  if (!answer) return answer.take_error();
  if (options.as_json) return show_json(context, *answer);
  print_datasets(context.out, context.terminal, *answer, context.timer.wall());
  return 0;
}

}  // namespace

void add_ls(App& app) {
  const auto options = std::make_shared<LsOptions>();
  Verb verb = app.verb("ls", "list staged datasets, their paths and leases",
                       "  spark-stage ls\n"
                       "  spark-stage ls --json | jq -r '.datasets[].path'\n"
                       "  spark-stage ls --fleet    the copies on all hosts; status 6 if some differ",
                       [options](Context& context) { return ls(context, *options); });
  verb.flag("--fleet", options->fleet, "compare the datasets' hashes on all hosts of the fleet");
  verb.flag("--json", options->as_json, "everything, as JSON");
}

}  // namespace spark::cli
