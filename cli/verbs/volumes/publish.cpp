// `volumes publish`: makes the state written here visible to the other hosts.
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/volumes/verbs.hpp"

namespace spark::cli {
namespace {

struct PublishOptions {
  std::string name;
  bool then_write = false, as_json = false;
};

Result<int> publish(Context& context, const PublishOptions& options) {
  const json::object body{{"then_write", options.then_write}};
  const auto result = run_job(
      context, {"POST", "/v1/volumes/" + percent_encoded(options.name) + "/publish", json::serialize(body)});
  if (!result) return result.take_error();
  if (options.as_json) return show_json(context, *result);
  const json::object* published = get_object(*result, "published");
  const std::int64_t generation = published == nullptr ? 0 : get_int(*published, "generation").value_or(0);
  const std::string name = printable(options.name);
  say(context, name + ": published as generation " + std::to_string(generation) +
                   (options.then_write ? "; writable again"
                                       : "; read-only until `spark-stage volumes up " + name + "`"));
  return 0;
}

}  // namespace

void add_publish(App& app, const Verb& group) {
  const auto options = std::make_shared<PublishOptions>();
  Verb verb = app.verb_of(group, "publish", "publish a consistent snapshot to all readers",
                          "  sudo spark-stage volumes publish models     then read-only, here too\n"
                          "  sudo spark-stage volumes up models          to write again\n"
                          "  sudo spark-stage volumes publish models --then-write",
                          [options](Context& context) { return publish(context, *options); });
  verb.argument("NAME", options->name, "exclusive volume of the config");
  verb.flag("--then-write", options->then_write, "go on writing at once");
  verb.flag("--json", options->as_json, "the publication, as JSON");
}

}  // namespace spark::cli
