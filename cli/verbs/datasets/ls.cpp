#include "cli/client/api.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/screens.hpp"

namespace spark::cli {
namespace {

Result<int> ls(Context& context, bool as_json) {
  const auto answer = call(*context.client, {"GET", "/v1/datasets", {}});
  if (!answer) return answer.take_error();
  if (as_json) {
    context.out << pretty(*answer) << "\n";
  } else {
    print_datasets(context.out, context.terminal, *answer, context.timer.wall());
  }
  return 0;
}

}  // namespace

void add_ls(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb("ls", "list staged datasets, their paths and leases",
                       "  spark-stage ls\n"
                       "  spark-stage ls --json | jq -r '.datasets[].path'",
                       [as_json](Context& context) { return ls(context, *as_json); });
  verb.flag("--json", *as_json, "everything, as JSON");
}

}  // namespace spark::cli
