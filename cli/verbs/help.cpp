#include "base/version.hpp"
#include "cli/client/api.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {

void add_help(App& app) {
  const auto words = std::make_shared<std::vector<std::string>>();
  Verb verb = app.verb("help", "all verbs, or one of them with its options and examples",
                       "  spark-stage help\n"
                       "  spark-stage help stage\n"
                       "  spark-stage help volumes take",
                       [&app, words](Context& context) -> Result<int> {
                         const auto text = app.help(*words);
                         if (!text) return text.take_error();
                         context.out << *text;
                         return 0;
                       });
  verb.optional_argument("VERB", *words, "the verb, word by word");
}

void add_version(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb("version", "this program's version", "  spark-stage version --json | jq -r .version",
                       [as_json](Context& context) -> Result<int> {
                         if (*as_json) {
                           context.out << pretty(json::object{{"version", kVersion}}) << "\n";
                         } else {
                           context.out << App::version() << "\n";
                         }
                         return 0;
                       });
  verb.flag("--json", *as_json, "as JSON");
}

}  // namespace spark::cli
