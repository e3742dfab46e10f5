#include <algorithm>

#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

struct DropOptions {
  std::vector<std::string> datasets;
  bool as_json = false;
};

std::string in_words(const json::object& row) {
  const Bytes left = get_count(row, "bytes");
  std::string words = printable(get_string(row, "name").value_or("?")) + ": " +
                      format_bytes(get_count(row, "freed_bytes")) + " of memory freed";
  if (left > 0) words += "; " + format_bytes(left) + " is mapped by a program, or was read meanwhile";
  return words;
}

Result<int> drop(Context& context, const DropOptions& options) {
  const json::object body{{"datasets", json::value_from(options.datasets)}};
  const auto result = run_job(context, {"POST", "/v1/drops", json::serialize(body)});
  if (!result) return result.take_error();
  if (options.as_json) return show_json(context, *result);
  const auto rows = objects_in(*result, "datasets");
  if (rows.empty()) context.out << "Nothing is staged - there is nothing to drop.\n";
  for (const json::object& row : rows) say(context, in_words(row));
  return 0;
}

}  // namespace

void add_drop(App& app) {
  const auto options = std::make_shared<DropOptions>();
  Verb verb = app.verb("drop", "take copies out of memory; they stay on the disk",
                       "  spark-stage drop            # all copies\n"
                       "  spark-stage drop llama\n\n"
                       "On a Spark the page cache takes memory from the GPU. The daemon frees it once\n"
                       "no program reads a copy: cache.page_cache. `status` shows what each copy holds.",
                       [options](Context& context) { return drop(context, *options); });
  verb.optional_argument("DATASET", options->datasets, "names that `spark-stage ls` has; none: all");
  verb.flag("--json", options->as_json, "the result, as JSON");
}

}  // namespace spark::cli
