#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

Result<int> release(Context& context, const std::string& lease) {
  const auto answer = call(*context.client, {"DELETE", "/v1/leases/" + percent_encoded(lease), {}});
  if (!answer) return answer.take_error();
  say(context, "lease " + printable(lease) + ": released");
  return 0;
}

}  // namespace

void add_release(App& app) {
  const auto lease = std::make_shared<std::string>();
  Verb verb = app.verb("release", "end a lease before its time",
                       "  spark-stage ls                shows the leases\n"
                       "  spark-stage release 3ee4d2ad",
                       [lease](Context& context) { return release(context, *lease); });
  verb.argument("LEASE", *lease, "its id, as 'spark-stage ls' has it");
}

}  // namespace spark::cli
