#include "base/text.hpp"
#include "cli/api.hpp"
#include "cli/format/text.hpp"
#include "cli/job.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

Result<int> verify(Context& context, const std::string& dataset) {
  ProgressView view(context);
  const auto result =
      run_job(context, {"POST", "/v1/datasets/" + percent_encoded(dataset) + "/verify", {}}, view);
  if (!result) return tl::unexpected<Error>(result.error());
  view.clear();
  const auto count = [&](const char* key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, get_int(*result, key).value_or(0)));
  };
  const std::chrono::duration<double> seconds(std::max(0.0, get_double(*result, "seconds").value_or(0)));
  context.out << printable(dataset) << ": equal to its manifest - " << format_bytes(count("bytes")) << ", "
              << counted(count("files"), "file") << ", read in "
              << format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds)) << "\n";
  return 0;
}

}  // namespace

void add_verify(App& app) {
  const auto dataset = std::make_shared<std::string>();
  Verb verb = app.verb("verify", "read a dataset's copy back and compare the hashes",
                       "  spark-stage verify imagenet\n"
                       "  spark-stage verify imagenet || spark-stage evict imagenet",
                       [dataset](Context& context) { return verify(context, *dataset); });
  verb.argument("DATASET", *dataset, "its name, as 'spark-stage ls' has it");
}

}  // namespace spark::cli
