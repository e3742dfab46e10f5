#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct ReleaseOptions {
  std::string lease;
  bool as_json = false;
};

Result<int> release(Context& context, const ReleaseOptions& options) {
  const std::string& lease = options.lease;
  const auto answer = call(*context.client, {"DELETE", "/v1/leases/" + percent_encoded(lease), {}});
  if (!answer) return answer.take_error();
  if (options.as_json) return print_json(context, json::object{{"released", lease}});
  say(context, "lease " + printable(lease) + ": released");
  return 0;
}

}  // namespace

void add_release(App& app) {
  const auto options = std::make_shared<ReleaseOptions>();
  Verb verb = app.verb("release", "end a lease before its time",
                       "  spark-stage ls                shows the leases\n"
                       "  spark-stage release 3ee4d2ad",
                       [options](Context& context) { return release(context, *options); });
  verb.argument("LEASE", options->lease, "its id, as `spark-stage ls` has it");
  verb.flag("--json", options->as_json, "the result, as JSON");
}

}  // namespace spark::cli
