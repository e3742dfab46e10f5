#include "base/text.hpp"
#include "cli/api.hpp"
#include "cli/format/text.hpp"
#include "cli/verbs/verbs.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

// A config that is not there is a mistake of the user's, like one that is wrong.
Result<config::Config> load(const std::string& file) {
  auto loaded = config::load(file);
  if (!loaded && loaded.error().kind == Errc::NotFound) {
    Error error = loaded.error();
    error.kind = Errc::Invalid;
    if (error.hint.empty()) error.hint = "'spark-stage discover ADDRESS --yaml' prints one to start from";
    return tl::unexpected<Error>(std::move(error));
  }
  return loaded;
}

Result<int> check(Context& context, const std::string& given) {
  const std::string file = given.empty() ? context.config_file : given;
  const auto loaded = load(file);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  context.out << printable(file) << ": in order - " << counted(loaded->targets.size(), "target") << ", "
              << counted(loaded->volumes.size(), "volume") << ", "
              << counted(loaded->datasets.size(), "dataset") << "\n";
  return 0;
}

// In force is what a running daemon uses: after a bad edit the file differs from it. Another file than the
// installed one, or no daemon: what that file would put in force.
Result<json::object> in_force(Context& context) {
  if (context.config_file == config::kDefaultPath) {
    auto answer = call(*context.client, {"GET", "/v1/config", ""});
    if (answer || answer.error().kind != Errc::Unavailable) return answer;
  }
  const auto loaded = load(context.config_file);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return config::to_json(*loaded);
}

Result<int> show(Context& context, bool as_json) {
  const auto shown = in_force(context);
  if (!shown) return tl::unexpected<Error>(shown.error());
  const std::string text = as_json ? pretty(*shown) : config::to_yaml(*shown);
  context.out << text << (text.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace

void add_config(App& app) {
  Verb group = app.group("config", "check a configuration; show it with every default",
                         "  spark-stage config check\n"
                         "  spark-stage config check ./new.yaml\n"
                         "  spark-stage config show --json");
  const auto file = std::make_shared<std::string>();
  Verb check_verb = app.verb_of(group, "check", "every mistake in it, with file:line:column",
                                "  spark-stage config check ./new.yaml",
                                [file](Context& context) { return check(context, *file); });
  check_verb.optional_argument("FILE", *file, "another file than the installed one");
  const auto as_json = std::make_shared<bool>(false);
  Verb show_verb = app.verb_of(group, "show", "what is in force, with every default filled in",
                               "  spark-stage config show\n  spark-stage --config ./new.yaml config show",
                               [as_json](Context& context) { return show(context, *as_json); });
  show_verb.flag("--json", *as_json, "as JSON");
}

}  // namespace spark::cli
