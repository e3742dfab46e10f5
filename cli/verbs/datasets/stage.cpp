
#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct StageArguments {
  std::vector<std::string> datasets;
  std::string lease, hold, max_rate, wait;
  bool offline = false, now = false, accept_source = false, allow_dirty = false, detach = false,
       as_json = false;
};

Result<json::value> parse_holder(const std::string& text) {
  if (text == "cgroup") return json::value(text);
  if (const auto pid = parse_number<std::int64_t>(text); pid && *pid > 1) return json::value(*pid);
  return fail(Errc::Invalid, "--hold: '" + printable(text) + "' is not a process number, nor cgroup",
              "for example: --hold $$");
}

Result<StageOptions> options_of(const StageArguments& arguments) {
  StageOptions options;
  options.datasets = arguments.datasets;
  if (!arguments.lease.empty()) {
    auto time = parse_duration(arguments.lease);
    if (!time) return fail_with(time.error(), "--lease");
    options.time = *time;
  }
  auto wait = parse_wait(arguments.wait);
  if (!wait) return wait.take_error();
  options.wait = *wait;
  options.offline = arguments.offline;
  options.now = arguments.now;
  options.accept_source = arguments.accept_source;
  options.allow_dirty = arguments.allow_dirty;
  if (!arguments.hold.empty()) {
    auto holder = parse_holder(arguments.hold);
    if (!holder) return holder.take_error();
    options.hold = std::move(*holder);
  }
  if (!arguments.max_rate.empty()) {
    const auto rate = parse_rate_with_unit(arguments.max_rate);
    if (!rate) return fail_with(rate.error(), "--max-rate");
    options.max_rate = *rate;
  }
  return options;
}

Result<int> detach(Context& context, const StageArguments& arguments, const StageOptions& options) {
  const auto job = start_job(context, stage_request(options));
  if (!job) return job.take_error();
  tell_detached(context, *job, arguments.as_json);
  return 0;
}

Result<int> stage(Context& context, const StageArguments& arguments) {
  const auto options = options_of(arguments);
  if (!options) return options.take_error();
  if (arguments.detach) return detach(context, arguments, *options);
  const auto result = stage_and_tell(context, *options);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, arguments.datasets);
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
  verb.argument("DATASET", arguments->datasets, "a name from the config, or VOLUME:PATH");
  verb.option("--lease", "TIME", arguments->lease, "keep it from eviction that long: 30m, 12h, 3d");
  verb.option("--hold", "PID|cgroup", arguments->hold, "keep it while that process, or this cgroup, lives");
  verb.option("--max-rate", "RATE", arguments->max_rate, "bytes per second at most: 800MB/s");
  verb.option("--wait", "TIME", arguments->wait, "wait that long for a source that is away");
  verb.flag("--offline", arguments->offline, "take the newest copy here while the source is away");
  verb.flag("--now", arguments->now, "with a lease: do not wait until it is complete");
  verb.flag("--accept-source", arguments->accept_source,
            "also if it is now empty, or on another file system");
  verb.flag("--allow-dirty", arguments->allow_dirty, "also from a volume that another host writes");
  verb.flag("--detach", arguments->detach, "do not wait; print the job's number");
  verb.flag("--json", arguments->as_json, "the result, as JSON");
}

}  // namespace spark::cli
