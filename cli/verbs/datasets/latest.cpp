#include <filesystem>

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/unsent.hpp"
#include "cli/verbs/datasets/stage_request.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

constexpr Duration kPause{1'000};
constexpr int kMostTries = 3;  // of a checkpoint that another host deletes before it is staged

struct LatestOptions {
  std::string output;
  bool offline = false, as_json = false;
};

// Of a copy that is one file, ".../data/KEY/GENERATION", the path that ends with the file's own name.
std::string with_its_name(const std::filesystem::path& staged, const std::string& dataset) {
  const std::filesystem::path key = staged.parent_path().filename(),
                              name(dataset.substr(dataset.find_last_of("/:") + 1));
  const auto named =
      staged.parent_path().parent_path().parent_path() / ".named" / key / staged.filename() / name;
  std::error_code error;
  return std::filesystem::equivalent(named, staged, error) ? named.native() : staged.native();
}

// Where it is on this host; from the volume it is staged first.
Result<std::string> path_of_latest(Context& context, const json::object& latest) {
  if (const auto local = get_string(latest, "local")) return *local;
  StageOptions options;
  options.datasets = {get_text(latest, "dataset")};
  const auto result = stage_and_tell(context, options);
  if (!result) return result.take_error();
  const auto staged = staged_datasets(*result, options.datasets);
  if (!staged) return staged.take_error();
  return with_its_name(staged->front().path, options.datasets.front());
}

// Waits while the daemons of several hosts may publish a checkpoint that this host has a shard of, as this
// host's says. A job that still runs saves newer ones without end: one that was published meanwhile is used.
Result<json::object> find_latest(Context& context, const LatestOptions& options) {
  const std::string path = "/v1/outputs/" + percent_encoded(options.output) + "/latest";
  const Request request{"GET", path + (options.offline ? "/offline" : ""), {}, kOutputPatience};
  std::string first_awaited, first_published, awaited;
  for (;;) {
    auto found = call(*context.client, request);
    const json::object* pending = found ? get_object(*found, "pending") : nullptr;
    if (pending == nullptr) return found;
    const std::string published = get_shown(*found, "name"), now = get_shown(*pending, "name");
    if (first_awaited.empty()) first_awaited = now, first_published = published;
    if (now != first_awaited && published != first_published) return found;
    if (!get_bool(*pending, "may_publish").value_or(false)) {
      if (found->contains("dataset")) return found;
      return fail(Errc::NotFound,
                  "output " + options.output +
                      ": no checkpoint is published; the shards of all hosts are not there for " + now,
                  "`spark-stage status` shows which hosts have sent theirs");
    }
    if (now != awaited) warn(context, "spark-stage: waiting for other hosts' shards of " + now);
    awaited = now;
    context.timer.sleep(kPause);
    if (context.stop) return fail(Errc::Cancelled, "interrupted");
  }
}

// With its "path". NotFound means "there is none yet", and a job then starts from scratch: only the daemon's
// own answer may say so.
Result<json::object> find_and_stage_latest(Context& context, const LatestOptions& options) {
  for (int tries = 1;; ++tries) {
    auto found = find_latest(context, options);
    if (!found) return found;
    const auto path = path_of_latest(context, *found);
    if (path) {
      (*found)["path"] = *path;
      return found;
    }
    if (path.error().kind != Errc::NotFound) return path.take_error();
    if (tries == kMostTries) {
      return fail(
          Errc::Unavailable,
          "output " + options.output + ": " + get_shown(*found, "name") +
              " is no longer on the volume, and neither were those found before: " + path.error().what,
          "run the same command again; if it fails again, raise `keep` of the output");
    }
    warn(context,
         "spark-stage: " + get_shown(*found, "name") + " was deleted meanwhile; looking for a newer one");
    context.timer.sleep(kPause);
  }
}

Result<int> latest(Context& context, const LatestOptions& options) {
  context.catch_interrupts();
  const auto found = find_and_stage_latest(context, options);
  if (!found) return found.take_error();
  if (const json::object* unproven = get_object(*found, "unproven")) {
    warn(context, "spark-stage: " + get_shown(*unproven, "name") +
                      " may be complete, but that is not known: " + get_text(*unproven, "reason"));
  }
  if (const json::object* later = get_object(*found, "later")) {
    warn(context, "spark-stage: " + get_shown(*later, "name") + " was saved later than " +
                      get_shown(*found, "name") + ", which has a higher step; if the job has to go on from " +
                      get_shown(*later, "name") +
                      ", as in a later stage, delete the other, or give each stage a folder of its own");
  }
  if (const json::object* pending = get_object(*found, "pending")) {
    warn(context, "spark-stage: " + get_shown(*pending, "name") +
                      " of this host is not published, as other hosts' shards are missing; this is " +
                      get_shown(*found, "name"));
  }
  context.out << (options.as_json ? pretty(*found) : get_text(*found, "path")) << "\n";
  return 0;
}

}  // namespace

void add_latest(App& app) {
  const auto options = std::make_shared<LatestOptions>();
  Verb verb = app.verb("latest", "the path of an output's newest complete checkpoint",
                       "  spark-stage latest run7\n"
                       "  checkpoint=$(spark-stage latest run7) || [ $? -eq 3 ] || exit   # 3: none yet\n"
                       "  python train.py ${checkpoint:+--resume \"$checkpoint\"}\n\n"
                       "The one on this host, if it is complete and of the highest step; otherwise the\n"
                       "one on the volume, which is staged first.",
                       [options](Context& context) { return latest(context, *options); });
  verb.argument("OUTPUT", options->output, "its name in the configuration");
  verb.flag("--offline", options->offline, "the one on this host while the volume is away");
  verb.flag("--json", options->as_json, "its name and path, as JSON");
}

}  // namespace spark::cli
