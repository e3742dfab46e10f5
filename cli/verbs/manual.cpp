// Makes the manual page; used by the build.
#include "base/file.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {

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
