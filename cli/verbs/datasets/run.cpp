#include <algorithm>

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/unsent.hpp"
#include "cli/verbs/datasets/hub_links.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

constexpr int kNotExecutable = 126, kNotFound = 127;  // as every shell and env(1) have them

constexpr char kDaemonVariable[] = "SPARK_STAGE_SOCKET";  // by it, programs of the command find the daemon

// Two datasets in one variable would hide one of them from the command.
Result<Environment> environment_for(const std::vector<StagedDataset>& staged) {
  Environment environment;
  const auto set = [&](const std::string& variable, const StagedDataset& dataset) -> Result<> {
    const auto [entry, is_new] = environment.try_emplace(variable, dataset.path);
    if (is_new || entry->second == dataset.path) return {};
    return fail(Errc::Invalid, "two of these datasets want the variable " + variable,
                "rename one in the config, or run them apart");
  };
  for (const StagedDataset& dataset : staged) {
    const std::string variable = config::environment_name(dataset.name);
    const auto done = variable == kDaemonVariable ? Result<>() : set(variable, dataset);
    if (!done) return done.take_error();
    const auto also = dataset.env.empty() ? Result<>() : set(dataset.env, dataset);
    if (!also) return also.take_error();
  }
  return environment;
}

Result<int> run(Context& context, const StageOptions& options) {
  const auto result = stage_and_tell(context, options);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, options.datasets);
  if (!staged) return staged.take_error();
  auto environment = environment_for(*staged);
  if (!environment) return environment.take_error();
  const auto is_socket = [](const StagedDataset& one) {
    return config::environment_name(one.name) == kDaemonVariable && one.env.empty();
  };
  if (std::ranges::any_of(*staged, is_socket))
    tell(context, std::string(kDaemonVariable) +
                      " is the daemon's, and has no dataset's path: give the dataset a variable with env");
  const auto links = HubLinks::make(*staged);
  for (const std::string& sentence : links->left_out()) tell(context, sentence);
  for (const auto& [variable, value] : links->variables()) environment->try_emplace(variable, value);
  const std::vector<std::string> outputs = output_names(context);
  if (context.stop) return fail(Errc::Cancelled, "interrupted before the command began");

  std::function<void()> afterwards;
  if (!outputs.empty() || links->is_made()) {
    afterwards = [&] {
      if (const std::string left = links->remove(); !left.empty()) tell(context, left);
      tell_unsent(context, outputs);
    };
  }
  const auto status = context.become(context.command, *environment, afterwards);
  if (status) return status;
  report(context, status.error());
  return status.error().kind == Errc::NotFound ? kNotFound : kNotExecutable;
}

}  // namespace

void add_run(App& app) {
  const auto options = std::make_shared<StageOptions>();
  options->hold = true;
  Verb verb = app.verb("run", "stage datasets, then run a command that finds them",
                       "  spark-stage run imagenet -- python train.py     $SPARK_STAGE_IMAGENET\n"
                       "  spark-stage run --now imagenet -- python train.py    while it is staged\n"
                       "  spark-stage run imagenet models -- torchrun --nproc-per-node 1 train.py\n"
                       "  spark-stage run datasets:laion/part-07 -- ./job.sh\n"
                       "                                       $SPARK_STAGE_DATASETS_LAION_PART_07\n\n"
                       "The datasets are leased as long as the command runs, so nothing evicts them.\n"
                       "Afterwards it names outputs without their newest checkpoint on the volume.\n"
                       "The exit status is the command's; 128 and the signal's number if one ended it.",
                       [options](Context& context) { return run(context, *options); });
  app.add_to_usage(verb, "-- COMMAND...");
  verb.argument("DATASET", options->datasets, "a name from the config, or VOLUME:PATH");
  add_source_options(verb, *options, "begin at once; reads of what is missing wait");
}

}  // namespace spark::cli
