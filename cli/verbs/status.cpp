#include "cli/status.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/verbs/watch.hpp"
#include "cli/view/screens.hpp"

namespace spark::cli {
namespace {

struct StatusOptions {
  std::vector<std::string> names;
  std::string watch;  // seconds; empty: one look
  bool as_json = false;
};

Result<int> status(Context& context, const StatusOptions& options) {
  if (!options.watch.empty()) {
    const auto interval = parse_interval(options.watch);
    if (!interval) return interval.take_error();
    return watch_status(context, {options.names, *interval, options.as_json});
  }
  auto answer = ask_status(context);
  if (answer) answer = about(std::move(*answer), options.names);
  if (!answer) return answer.take_error();
  if (options.as_json) return print_json(context, *answer);
  print_status(context.out, context.terminal, *answer, context.timer.wall());
  return 0;
}

}  // namespace

void add_status(App& app) {
  const auto options = std::make_shared<StatusOptions>();
  Verb verb = app.verb("status", "volumes, staging in progress, cache",
                       "  spark-stage status\n"
                       "  spark-stage status datasets        one volume\n"
                       "  spark-stage status --watch         again every 2 s, until ^C\n"
                       "  spark-stage status --watch=10 >> status.log          the changes\n"
                       "  spark-stage status --json | jq '.volumes[] | select(.state != \"ready\")'",
                       [options](Context& context) { return status(context, *options); });
  verb.optional_argument("NAME", options->names, "these volumes alone");
  verb.option_or("-w,--watch", "SECONDS", options->watch, "2", "refresh every SECONDS (2)");
  verb.flag("--json", options->as_json, "everything, as JSON; with --watch an object a line");
}

}  // namespace spark::cli
