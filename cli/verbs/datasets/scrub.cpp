#include <algorithm>

#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/scrub.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

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

}  // namespace

Result<int> scrub(Context& context, const std::vector<std::string>& datasets, bool as_json) {
  const json::object body{{"datasets", json::value_from(datasets)}};
  const auto result = run_job(context, {"POST", "/v1/scrubs", json::serialize(body)});
  if (!result) return result.take_error();
  const auto rows = objects_in(*result, "datasets");
  if (as_json) {
    show_json(context, *result);
  } else if (rows.empty()) {
    context.out << "Nothing is staged - there is nothing to scrub.\n";
  } else {
    for (const json::object& row : rows) say(context, verdict(row));
  }
  return exit_status_of(*result);
}

void add_scrub(App& app) {
  struct Options {
    std::vector<std::string> datasets;
    bool as_json = false;
  };
  const auto options = std::make_shared<Options>();
  Verb verb =
      app.verb("scrub", "the old spelling of verify --all", "  spark-stage verify --all",
               [options](Context& context) { return scrub(context, options->datasets, options->as_json); });
  verb.optional_argument("DATASET", options->datasets,
                         "their names, as `spark-stage ls` has them; none: all");
  verb.flag("--json", options->as_json, "the result, as JSON");
  app.hide(verb);
}

}  // namespace spark::cli
