#include "base/file.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/client/api.hpp"
#include "cli/client/noted_client.hpp"
#include "cli/say.hpp"
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

namespace {

// Empty: none answers.
std::string running_daemon(Context& context) {
  const auto answer = context.client->send({"GET", "/healthz", {}});
  return answer ? daemon_version(*answer) : std::string();
}

}  // namespace

void add_version(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb(
      "version", "the versions of this program and of the running daemon",
      "  spark-stage version --json | jq -r .version", [as_json](Context& context) -> Result<int> {
        const std::string daemon = running_daemon(context);
        if (*as_json)
          return show_json(context, json::object{{"version", kVersion}, {"daemon", or_null(daemon)}});
        context.out << App::version() << "\n"
                    << (daemon.empty() ? "spark-staged: no answer on " + printable(context.socket)
                                       : "spark-staged " + printable(daemon) + " is running")
                    << "\n";
        return 0;
      });
  verb.flag("--json", *as_json, "as JSON; `daemon` is null where none answers");
}

// Makes the manual page; used by the build.
void add_manual(App& app) {
  const auto file = std::make_shared<std::string>();
  Verb verb = app.verb("manual", "the manual page, in roff", "  spark-stage manual docs/man/spark-stage.1.in",
                       [&app, file](Context& context) -> Result<int> {
                         auto page = read_file(*file);
                         if (!page) return page.take_error();
                         context.out << app.manual(std::move(*page));
                         return 0;
                       });
  verb.argument("FILE", *file, "the page without the parts from the help");
  app.hide(verb);
}

}  // namespace spark::cli
