#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/by_time.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct PrefetchArguments {
  StageOptions options;
  std::string by;
  bool detach = false, as_json = false;
};

// Returns once it is known that there is room, so that a refusal is seen.
Result<int> detach(Context& context, const StageOptions& options, bool as_json) {
  context.catch_interrupts();
  const auto job = start_job(context, stage_request(options));
  if (!job) return job.take_error();
  ProgressView view(context.err, context.terminal, context.timer);
  if (auto accepted = wait_until_accepted(context, *job, view); !accepted) return accepted.take_error();
  view.clear();
  tell_detached(context, *job, as_json);
  return 0;
}

Result<int> prefetch(Context& context, const PrefetchArguments& arguments) {
  StageOptions options = arguments.options;
  if (!arguments.by.empty()) {
    const auto by = parse_by(arguments.by, context.timer.wall());
    if (!by) return fail_with(by.error(), "--by");
    options.by = *by;
  }
  if (arguments.detach) return detach(context, options, arguments.as_json);
  const auto result = stage_and_tell(context, options);
  if (!result) return result.take_error();
  return arguments.as_json ? show_json(context, *result) : 0;
}

}  // namespace

void add_prefetch(App& app) {
  const auto arguments = std::make_shared<PrefetchArguments>();
  arguments->options.prefetch = true;
  Verb verb = app.verb("prefetch", "stage for a later job, at the lowest priority",
                       "  spark-stage prefetch phase2                when nothing else is copied\n"
                       "  spark-stage prefetch phase2 --by 18:00     as slowly as that allows\n"
                       "  spark-stage prefetch phase2 phase3 --by 36h --detach",
                       [arguments](Context& context) { return prefetch(context, *arguments); });
  verb.argument("DATASET", arguments->options.datasets, "a name from the config, or VOLUME:PATH");
  verb.option("--by", "TIME", arguments->by, "when it has to be there: 18:00, 2h, or RFC 3339");
  verb.parsed("--wait", "TIME", arguments->options.wait, parse_duration,
              "give up if its source is away for longer");
  verb.flag("--detach", arguments->detach, "wait only until there is room; print the job's number");
  verb.flag("--json", arguments->as_json, "the result, as JSON");
}

}  // namespace spark::cli
