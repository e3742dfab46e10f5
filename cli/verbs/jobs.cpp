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
  if (as_json) return print_json(context, *answer);
  print_jobs(context.out, context.terminal, *answer, context.timer.wall());
  return 0;
}

struct CancelOptions {
  std::vector<std::string> ids;
  bool as_json = false;
};

// Each of them, whatever becomes of the others; the exit status of the first that could not be cancelled.
Result<int> cancel(Context& context, const CancelOptions& options) {
  int status = 0;
  json::array done;
  for (const std::string& id : options.ids) {
    const auto cancelled = call(*context.client, {"DELETE", "/v1/jobs/" + percent_encoded(id), {}});
    if (cancelled) {
      done.emplace_back(id);
      if (!options.as_json) say(context, "job " + printable(id) + ": cancelled");
      continue;
    }
    const int failed = report(context, cancelled.error());
    if (status == 0) status = failed;
  }
  if (options.as_json) context.out << pretty(json::object{{"cancelled", std::move(done)}}) << "\n";
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
