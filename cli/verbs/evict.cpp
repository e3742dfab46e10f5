#include "base/text.hpp"
#include "cli/api.hpp"
#include "cli/job.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

Result<int> evict(Context& context, const std::string& dataset) {
  ProgressView view(context);
  const auto result =
      run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/evict", {}}, view);
  if (!result) return tl::unexpected<Error>(result.error());
  view.clear();
  const auto freed = std::max<std::int64_t>(0, get_int(*result, "freed_bytes").value_or(0));
  context.out << printable(dataset) << ": evicted, " << format_bytes(static_cast<Bytes>(freed)) << " freed\n";
  return 0;
}

}  // namespace

void add_evict(App& app) {
  const auto dataset = std::make_shared<std::string>();
  Verb verb =
      app.verb("evict", "remove a dataset's copy; refused while leased", "  spark-stage evict imagenet",
               [dataset](Context& context) { return evict(context, *dataset); });
  verb.argument("DATASET", *dataset, "its name, as 'spark-stage ls' has it");
}

}  // namespace spark::cli
