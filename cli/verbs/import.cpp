#include "migration/import.hpp"
#include "base/text.hpp"
#include "cli/new_file.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

Result<int> import(Context& context, const std::string& file) {
  const auto imported =
      host::import_configuration(context.root, host::survey(context.root), context.timer.wall());
  if (file.empty()) {
    context.out << imported.yaml;
  } else if (auto written = write_new_file(file, imported.yaml); !written) {
    return written.take_error();
  }
  if (imported.targets + imported.volumes + imported.left_out == 0) {
    tell(context,
         "This host has no manual setup to import - "
         "`spark-stage discover ADDRESS --yaml` begins with a target");
    return 0;
  }
  std::string words = counted(imported.targets, "target") + ", " + counted(imported.volumes, "volume");
  if (imported.left_out > 0) {
    words += "; " + std::to_string(imported.left_out) + " not imported, for the reasons in the comments";
  }
  tell(context, words);
  return 0;
}

}  // namespace

void add_import(App& app) {
  const auto file = std::make_shared<std::string>();
  Verb verb = app.verb("import", "make a configuration from fstab and units",
                       "  spark-stage import\n"
                       "  sudo spark-stage import --output /etc/spark-stage/spark-stage.yaml",
                       [file](Context& context) { return import(context, *file); });
  verb.option("--output", "FILE", *file, "a new file instead of standard output");
}

}  // namespace spark::cli
