// The daemon's jobs: shown and cancelled, however they were started. `wait --job` is in volumes/wait.cpp.
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/screens.hpp"

namespace spark::cli {
namespace {

Result<int> jobs(Context& context, bool as_json) {
  const auto answer = call(*context.client, {"GET", "/v1/jobs", {}});
  if (!answer) return answer.take_error();
  if (as_json) return show_json(context, *answer);
  print_jobs(context.out, context.terminal, *answer, context.timer.wall());
  return 0;
}

struct CancelOptions {
  std::vector<std::string> ids;
  bool as_json = false;
};

Result<int> cancel(Context& context, const CancelOptions& options) {
  json::array done;
  const int status = for_each_item(context, options.ids, [&](const std::string& id) {
    auto cancelled = call(*context.client, {"DELETE", "/v1/jobs/" + percent_encoded(id), {}});
    if (cancelled) done.emplace_back(id);
    if (cancelled && !options.as_json) say(context, "job " + printable(id) + ": cancelled");
    return cancelled;
  });
  if (options.as_json) show_json(context, json::object{{"cancelled", std::move(done)}});
  return status;
}

}  // namespace

void add_jobs(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb("jobs", "list running and recent jobs, and their requesters",
                       "  spark-stage jobs\n"
                       "  spark-stage jobs --json | jq -r '.jobs[] | select(.state == \"running\").id'",
                       [as_json](Context& context) { return jobs(context, *as_json); });
  verb.flag("--json", *as_json, "everything, as JSON");
}

void add_cancel(App& app) {
  const auto options = std::make_shared<CancelOptions>();
  Verb verb = app.verb("cancel", "end jobs; finished parts stay for the next attempt",
                       "  spark-stage jobs            shows their numbers\n"
                       "  spark-stage cancel 7",
                       [options](Context& context) { return cancel(context, *options); });
  verb.argument("JOB", options->ids, "numbers of jobs; of another user's: root alone");
  verb.flag("--json", options->as_json, "those that were cancelled, as JSON");
}

}  // namespace spark::cli
