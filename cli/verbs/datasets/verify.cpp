#include <algorithm>

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

struct VerifyOptions {
  std::vector<std::string> datasets;
  bool all = false, sha256 = false, as_json = false;
};

std::string equal_to(const json::object& result, const std::string& what) {
  const std::chrono::duration<double> seconds(std::max(0.0, get_double(result, "seconds").value_or(0)));
  return what + " - " + format_bytes(get_count(result, "bytes")) + ", " +
         counted(get_count(result, "files"), "file") + ", read in " +
         format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds));
}

std::string as_published(const json::object& result, const std::string& what) {
  return what + counted(get_count(result, "sha256_files"), "file") + " as published (SHA-256)";
}

Result<int> verify_one(Context& context, const std::string& dataset, const VerifyOptions& options) {
  const std::string body = options.sha256 ? R"({"sha256": true})" : "";
  const auto result =
      run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/verify", body});
  if (!result) return result.take_error();
  if (options.as_json) return show_json(context, *result);
  const bool is_copy = get_bool(*result, "copy").value_or(true);
  if (is_copy) say(context, equal_to(*result, printable(dataset) + ": equal to its manifest"));
  if (const json::object* folder = get_object(*result, "adopted"))
    say(context, equal_to(*folder, printable(dataset) + ": its adopted folder is as peers get it"));
  if (options.sha256 && is_copy) say(context, as_published(*result, printable(dataset) + ": "));
  if (const json::object* folder = options.sha256 ? get_object(*result, "adopted") : nullptr)
    say(context, as_published(*folder, printable(dataset) + ": in its adopted folder, "));
  return 0;
}

std::string verdict(const json::object& row) {
  const std::string name = printable(get_string(row, "name").value_or("?"));
  const auto state = get_string(row, "state");
  const std::string reason = get_shown(row, "reason");
  if (!state) return name + ": not read: " + reason;
  if (*state != "ready") return name + ": damaged: " + reason;
  return name + ": as it was staged - " + format_bytes(get_count(row, "bytes")) + ", " +
         counted(get_count(row, "files"), "file");
}

// Damage outweighs a copy that could not be read at all.
int exit_status_of(const json::object& result) {
  const auto has = [&](const auto& condition) {
    return std::ranges::any_of(objects_in(result, "datasets"),
                               [&](const json::object& row) { return condition(get_string(row, "state")); });
  };
  if (has([](const auto& state) { return state == "failed"; })) return exit_status(Errc::Mismatch);
  return has([](const auto& state) { return !state; }) ? exit_status(Errc::Failed) : 0;
}

// `verify --all`, at idle priority. 6: a copy is damaged, and is no longer served; 1: one could not be read.
Result<int> scrub(Context& context, const VerifyOptions& options) {
  const json::object body{{"datasets", json::value_from(options.datasets)}};
  const auto result = run_job(context, {"POST", "/v1/scrubs", json::serialize(body)});
  if (!result) return result.take_error();
  const auto rows = objects_in(*result, "datasets");
  if (options.as_json) {
    show_json(context, *result);
  } else if (rows.empty()) {
    context.out << "Nothing is staged - there is nothing to scrub.\n";
  } else {
    for (const json::object& row : rows) say(context, verdict(row));
  }
  return exit_status_of(*result);
}

Result<int> verify(Context& context, const VerifyOptions& options) {
  if (std::ranges::find(options.datasets, "") != options.datasets.end())
    return fail(Errc::Invalid, "a dataset's name is empty", "is a variable of a script not set?");
  if (options.all && options.datasets.empty() && !options.sha256) return scrub(context, options);
  if (options.all || options.datasets.empty()) {
    return fail(Errc::Invalid, "verify takes names of datasets, or --all without --sha256",
                "for example: `spark-stage verify imagenet`, `spark-stage verify --all`");
  }
  return for_each_item(context, options.datasets,
                       [&](const std::string& dataset) { return verify_one(context, dataset, options); });
}

}  // namespace

void add_verify(App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  Verb verb = app.verb("verify", "read copies back and compare the hashes",
                       "  spark-stage verify imagenet\n"
                       "  spark-stage verify imagenet || [ $? -ne 6 ] || spark-stage evict imagenet\n"
                       "  spark-stage verify llama --sha256    # SHA256SUMS, Hugging Face's digests\n"
                       "  spark-stage verify --all             # at idle priority\n\n"
                       "The daemon verifies all copies from time to time: cache.scrub. A copy that\n"
                       "--all finds damaged is no longer served: the next request stages it again.",
                       [options](Context& context) { return verify(context, *options); });
  verb.optional_argument("DATASET", options->datasets,
                         "names that `ls` has, VOLUME:PATH, or adopted datasets");
  verb.flag("--all", options->all, "all copies, at idle priority");
  verb.flag("--sha256", options->sha256, "also check SHA256SUMS and Hugging Face digests in it");
  verb.flag("--json", options->as_json, "the result, as JSON");
}

void add_scrub(App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  Verb verb = app.verb("scrub", "the old spelling of verify --all", "  spark-stage verify --all",
                       [options](Context& context) { return scrub(context, *options); });
  verb.optional_argument("DATASET", options->datasets,
                         "their names, as `spark-stage ls` has them; none: all");
  verb.flag("--json", options->as_json, "the result, as JSON");
  app.hide(verb);
}

}  // namespace spark::cli
