
#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct StageArguments {
  StageOptions options;
  bool detach = false, as_json = false;
};

Result<json::value> parse_holder(const std::string& text) {
  if (text == "cgroup") return json::value(text);
  if (const auto pid = parse_number<std::int64_t>(text); pid && *pid > 1) return json::value(*pid);
  return fail(Errc::Invalid, "'" + printable(text) + "' is not a process number, nor cgroup",
              "for example: --hold $$");
}

Result<int> stage(Context& context, const StageArguments& arguments) {
  if (arguments.detach) return start_detached(context, stage_request(arguments.options), arguments.as_json);
  const auto result = stage_and_tell(context, arguments.options);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, arguments.options.datasets);
  if (!staged) return staged.take_error();
  if (arguments.as_json) return show_json(context, *result);
  for (const StagedDataset& dataset : *staged) context.out << dataset.path << "\n";
  return 0;
}

}  // namespace

void add_stage(App& app) {
  const auto arguments = std::make_shared<StageArguments>();
  Verb verb = app.verb("stage", "put datasets on the local NVMe, and print their paths",
                       "  spark-stage stage imagenet\n"
                       "  spark-stage stage imagenet models --lease 12h\n"
                       "  spark-stage stage imagenet --hold cgroup    as long as this Slurm job lives\n"
                       "  spark-stage stage imagenet --now --lease 12h    before it is complete\n"
                       "  spark-stage stage datasets:laion/part-07   any folder of a volume\n"
                       "  python train.py --data \"$(spark-stage stage imagenet)\"\n"
                       "  spark-stage stage imagenet --detach         look later: spark-stage jobs",
                       [arguments](Context& context) { return stage(context, *arguments); });
  StageOptions& options = arguments->options;
  verb.argument("DATASET", options.datasets, "a name from the config, or VOLUME:PATH");
  verb.parsed("--lease", "TIME", options.time, parse_lease, "keep it from eviction that long: 30m, 12h, 3d");
  verb.parsed("--hold", "PID|cgroup", options.hold, parse_holder,
              "keep it while that process, or this cgroup, lives");
  verb.parsed("--max-rate", "RATE", options.max_rate, parse_rate_with_unit,
              "bytes per second at most: 800MB/s");
  add_source_options(verb, options, "with a lease: do not wait until it is complete");
  verb.flag("--detach", arguments->detach, "do not wait; print the job's number");
  verb.flag("--json", arguments->as_json, "the result, as JSON");
}

}  // namespace spark::cli
