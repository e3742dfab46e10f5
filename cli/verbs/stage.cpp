#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/verbs/stage_request.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

struct Options {
  std::vector<std::string> datasets;
  std::string lease;
  bool detach = false, as_json = false;
};

Result<int> detach(Context& context, const Options& options, const Lease& lease) {
  const auto job = start_job(context, stage_request(options.datasets, lease));
  if (!job) return tl::unexpected<Error>(job.error());
  context.out << (options.as_json ? pretty(job->answer) : printable(job->id)) << "\n";
  return 0;
}

Result<int> stage(Context& context, const Options& options) {
  Lease lease;
  if (!options.lease.empty()) {
    auto time = parse_duration(options.lease);
    if (!time) return fail_with(time.error(), "--lease");
    lease.time = *time;
  }
  if (options.detach) return detach(context, options, lease);
  const auto result = stage_and_tell(context, options.datasets, lease);
  if (!result) return tl::unexpected<Error>(result.error());
  const auto staged = staged_datasets(*result, options.datasets);
  if (!staged) return tl::unexpected<Error>(staged.error());
  if (options.as_json) {
    context.out << pretty(*result) << "\n";
    return 0;
  }
  for (const StagedDataset& dataset : *staged) context.out << dataset.path << "\n";
  return 0;
}

}  // namespace

void add_stage(App& app) {
  const auto options = std::make_shared<Options>();
  Verb verb = app.verb("stage", "put datasets on the local NVMe, and print their paths",
                       "  spark-stage stage imagenet\n"
                       "  spark-stage stage imagenet models --lease 12h\n"
                       "  spark-stage stage datasets:laion/part-07   any folder of a volume\n"
                       "  python train.py --data \"$(spark-stage stage imagenet)\"\n"
                       "  spark-stage stage imagenet --detach         look later: spark-stage status",
                       [options](Context& context) { return stage(context, *options); });
  verb.argument("DATASET", options->datasets, "a name from the config, or VOLUME:PATH");
  verb.option("--lease", "TIME", options->lease, "keep it from eviction that long: 30m, 12h, 3d");
  verb.flag("--detach", options->detach, "do not wait; print the job's number");
  verb.flag("--json", options->as_json, "what was staged, as JSON");
}

}  // namespace spark::cli
