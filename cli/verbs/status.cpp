#include "cli/api.hpp"
#include "cli/format/screens.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

Result<int> status(Context& context, bool as_json) {
  const auto answer = call(*context.client, {"GET", "/v1/status", {}});
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (as_json) {
    context.out << pretty(*answer) << "\n";
  } else {
    print_status(context.out, context.terminal, *answer, context.timer.wall());
  }
  return 0;
}

}  // namespace

void add_status(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb("status", "volumes, staging in progress, cache",
                       "  spark-stage status\n"
                       "  spark-stage status --json | jq '.volumes[] | select(.state != \"ready\")'",
                       [as_json](Context& context) { return status(context, *as_json); });
  verb.flag("--json", *as_json, "everything, as JSON");
}

}  // namespace spark::cli
