#include <charconv>

#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct StageOptions {
  std::vector<std::string> datasets;
  std::string lease, hold, max_rate;
  bool allow_dirty = false, detach = false, as_json = false;
};

Result<json::value> parse_holder(const std::string& text) {
  if (text == "cgroup") return json::value(text);
  std::int64_t pid = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, pid);
  if (error == std::errc{} && parsed == end && pid > 1) return json::value(pid);
  return fail(Errc::Invalid, "--hold: '" + printable(text) + "' is not a process number, nor cgroup",
              "for example: --hold $$");
}

Result<StageWish> wish_of(const StageOptions& options) {
  StageWish wish;
  wish.datasets = options.datasets;
  if (!options.lease.empty()) {
    auto time = parse_duration(options.lease);
    if (!time) return fail_with(time.error(), "--lease");
    wish.time = *time;
  }
  wish.allow_dirty = options.allow_dirty;
  if (!options.hold.empty()) {
    auto holder = parse_holder(options.hold);
    if (!holder) return holder.take_error();
    wish.hold = std::move(*holder);
  }
  if (!options.max_rate.empty()) {
    const auto rate = parse_rate(options.max_rate);
    if (!rate) return fail_with(rate.error(), "--max-rate");
    wish.max_rate = *rate;
  }
  return wish;
}

Result<int> detach(Context& context, const StageOptions& options, const StageWish& wish) {
  const auto job = start_job(context, stage_request(wish));
  if (!job) return job.take_error();
  context.out << (options.as_json ? pretty(job->answer) : printable(job->id)) << "\n";
  return 0;
}

Result<int> stage(Context& context, const StageOptions& options) {
  const auto wish = wish_of(options);
  if (!wish) return wish.take_error();
  if (options.detach) return detach(context, options, *wish);
  const auto result = stage_and_tell(context, *wish);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, options.datasets);
  if (!staged) return staged.take_error();
  if (options.as_json) {
    context.out << pretty(*result) << "\n";
    return 0;
  }
  for (const StagedDataset& dataset : *staged) context.out << dataset.path << "\n";
  return 0;
}

}  // namespace

void add_stage(App& app) {
  const auto options = std::make_shared<StageOptions>();
  Verb verb = app.verb("stage", "put datasets on the local NVMe, and print their paths",
                       "  spark-stage stage imagenet\n"
                       "  spark-stage stage imagenet models --lease 12h\n"
                       "  spark-stage stage imagenet --hold cgroup    as long as this Slurm job lives\n"
                       "  spark-stage stage datasets:laion/part-07   any folder of a volume\n"
                       "  python train.py --data \"$(spark-stage stage imagenet)\"\n"
                       "  spark-stage stage imagenet --detach         look later: spark-stage status",
                       [options](Context& context) { return stage(context, *options); });
  verb.argument("DATASET", options->datasets, "a name from the config, or VOLUME:PATH");
  verb.option("--lease", "TIME", options->lease, "keep it from eviction that long: 30m, 12h, 3d");
  verb.option("--hold", "PID|cgroup", options->hold, "keep it while that process, or this cgroup, lives");
  verb.option("--max-rate", "RATE", options->max_rate, "bytes per second at most: 800MB/s");
  verb.flag("--allow-dirty", options->allow_dirty, "also from a volume that another host writes");
  verb.flag("--detach", options->detach, "do not wait; print the job's number");
  verb.flag("--json", options->as_json, "what was staged, as JSON");
}

}  // namespace spark::cli
