#include <cstdlib>
#include <string_view>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/unsent.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/progress_view.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

struct StageOutArguments {
  std::vector<std::string> words;  // a path and its destination, or names of outputs
  Bytes max_rate = 0;              // bytes per second; 0: no limit
  unsigned keep = 0, nodes = 0;
  std::string attempt;  // of the job; empty: as the environment has it
  bool accept_source = false, detach = false, as_json = false;
};

// The first that the job's environment has. Slurm counts a job's restarts from the first one.
std::string attempt_here() {
  constexpr const char* kNames[][2] = {{"SLURM_JOB_ID", "SLURM_RESTART_COUNT"},
                                       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}};
  for (const auto& [job, restarts] : kNames) {
    const char* id = std::getenv(job);
    const char* count = std::getenv(restarts);
    const bool is_told =
        id != nullptr && *id != '\0' && std::string_view(id) != "none";  // torchrun's default
    if (is_told) return std::string(id) + "." + (count == nullptr ? "0" : count);
  }
  return "";
}

Result<Request> request_of(const StageOutArguments& arguments) {
  auto source = absolute_path(arguments.words.front());
  if (!source) return source.take_error();
  while (!source->has_filename() && source->has_relative_path()) *source = source->parent_path();
  json::object body{{"source", source->native()}, {"destination", arguments.words.back()}};
  if (arguments.keep > 0) body["keep"] = arguments.keep;
  if (arguments.nodes > 0) body["nodes"] = arguments.nodes;
  if (arguments.nodes <= 1 && !arguments.attempt.empty())
    return fail(Errc::Invalid, "--attempt is for the shards of several hosts", "give --nodes as well");
  const std::string attempt = arguments.attempt.empty() ? attempt_here() : arguments.attempt;
  if (arguments.nodes > 1 && !attempt.empty()) body["attempt"] = attempt;
  if (arguments.max_rate > 0) body["max_rate"] = arguments.max_rate;
  if (arguments.accept_source) body["accept_source"] = true;
  return Request{"POST", "/v1/stage-outs", json::serialize(body), kOutputPatience};
}

Result<std::vector<Request>> requests_of(const StageOutArguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  if (words.size() == 2 && words.back().find(':') != std::string::npos)
    return request_of(arguments).map([](Request request) { return std::vector{std::move(request)}; });
  std::vector<Request> requests;
  for (const std::string& name : words) {
    if (name.find_first_of("/:") != std::string::npos) {
      return fail(Errc::Invalid, "'" + printable(name) + "' is not the name of an output",
                  "write PATH VOLUME:PATH, or the names of outputs of the configuration");
    }
    requests.push_back({"POST", "/v1/outputs/" + percent_encoded(name) + "/send", "", kOutputPatience});
  }
  if (arguments.keep > 0 || arguments.nodes > 0 || arguments.max_rate > 0 || arguments.accept_source ||
      !arguments.attempt.empty())
    return fail(Errc::Invalid, "--keep, --nodes, --attempt, --max-rate and --accept-source are for a path",
                "for an output, set keep and nodes in the configuration");
  return requests;
}

void tell_result(ProgressView& view, const json::object& result) {
  const std::string name = get_shown(result, "name");
  const bool was_there = get_string(result, "served_from") == "unchanged";
  view.note(name + ": " + (was_there ? "was there already, complete" : staged_in_words(result)));
  const auto skipped = get_printable(result, "skipped");
  if (!skipped.empty()) view.note("spark-stage: " + skipped_in_words(skipped));
  for (const std::string& warning : get_printable(result, "warnings")) view.note("spark-stage: " + warning);
  for (const std::string& older : get_printable(result, "removed"))
    view.note("  " + older + " was deleted there");
}

Result<int> send(Context& context, const Request& request, const StageOutArguments& arguments) {
  if (arguments.detach) return start_detached(context, request, arguments.as_json);
  ProgressView view(context.err, context.terminal, context.timer);
  const auto result = run_job(context, request, view);
  if (!result) return result.take_error();
  view.clear();
  if (get_string(*result, "state") == "waiting") {
    return fail(Errc::Unavailable,
                get_shown(*result, "name") + " is not published yet: shards of other hosts are missing",
                "the daemon goes on; `spark-stage status` shows it");
  }
  tell_result(view, *result);
  if (arguments.as_json) return show_json(context, *result);
  context.out << get_shown(*result, "path") << "\n";
  return 0;
}

Result<int> stage_out(Context& context, const StageOutArguments& arguments) {
  const auto requests = requests_of(arguments);
  if (!requests) return requests.take_error();
  return for_each_item(context, *requests,
                       [&](const Request& request) { return send(context, request, arguments); });
}

}  // namespace

void add_stage_out(App& app) {
  constexpr unsigned kMostKept = 1 << 20, kMostNodes = 10'000;
  const auto arguments = std::make_shared<StageOutArguments>();
  Verb verb = app.verb("stage-out", "send a job's output to a volume, complete or not at all",
                       "  spark-stage stage-out /data/out/step-1000 checkpoints:run7/step-1000\n"
                       "  spark-stage stage-out step-1000 checkpoints:run7/step-1000 --keep 3\n"
                       "  spark-stage stage-out model nas:models/v2 --detach    look later: jobs\n"
                       "  spark-stage stage-out step-9 nas:run7/step-9 --nodes 2   on both hosts\n"
                       "  spark-stage stage-out run7         the newest complete checkpoint of an output",
                       [arguments](Context& context) { return stage_out(context, *arguments); });
  verb.argument("SOURCE", arguments->words,
                "a complete file or folder of this host, and VOLUME:PATH\nwhere it goes; or names of outputs "
                "of the config");
  verb.count("--keep", arguments->keep, {1, kMostKept},
             "then delete all but the N newest outputs in that folder");
  verb.count("--nodes", arguments->nodes, {1, kMostNodes}, "hosts with shards of one checkpoint");
  verb.option("--attempt", "TEXT", arguments->attempt, "the job's attempt, if not that of Slurm or torchrun");
  verb.parsed("--max-rate", "RATE", arguments->max_rate, parse_rate_with_unit,
              "bytes per second at most: 800MB/s");
  verb.flag("--accept-source", arguments->accept_source, "also replace a copy of another source");
  verb.flag("--detach", arguments->detach, "do not wait; print the job's number");
  verb.flag("--json", arguments->as_json, "the result, as JSON");
}

}  // namespace spark::cli
