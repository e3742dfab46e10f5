#include "migration/import.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/new_file.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"
#include "migration/undo.hpp"

namespace spark::cli {
namespace {

struct ImportOptions {
  std::string output;
  bool is_dry_run = false, undoes = false;
};

std::string at_next_boot(const host::Item& item) {
  if (item.needs_volume) return "before the volume that it needs";
  if (!item.is_taken()) return "as before";
  if (item.what.starts_with("unit ")) return "not started";
  if (item.what.starts_with("target")) return "connected by spark-staged";
  return std::string("mounted ") + (item.becomes_read_only ? "read-only " : "") + "by spark-staged" +
         (item.becomes_read_only ? ", was read-write" : "");
}

void print_plan(Context& context, const std::vector<host::Item>& items) {
  Table table({"WHAT", "WHERE", "FROM", "AT THE NEXT BOOT"}, {2, 1});
  for (const host::Item& item : items) {
    table.add({{item.what},
               {item.where.empty() ? "-" : item.where},
               {item.origin},
               {at_next_boot(item), item.is_taken() ? Colour::Green : Colour::Yellow}});
    if (!item.is_taken()) table.add_note((item.ended_by.empty() ? "left out: " : "first: ") + item.reason);
  }
  table.print(context.out, context.terminal);
}

std::string summary(const host::Imported& imported) {
  std::string words = counted(imported.targets, "target") + ", " + counted(imported.volumes, "volume");
  if (imported.left_out > 0) {
    words += "; " + std::to_string(imported.left_out) + " not imported, for the reasons in the comments";
  }
  const auto read_only = std::ranges::count_if(
      imported.items, [](const host::Item& item) { return item.is_taken() && item.becomes_read_only; });
  if (read_only > 0)
    words += "; read-only from now on, was read-write: " +
             counted(static_cast<std::uint64_t>(read_only), "volume");
  return words;
}

Result<int> undo(Context& context) {
  const auto undone = host::undo_import(context.root);
  if (!undone) return undone.take_error();
  for (const std::string& file : undone->files) say(context, file + " is restored");
  for (const std::string& file : undone->set_aside) say(context, "what stood there is kept as " + file);
  // It keeps what an earlier move brought.
  const bool goes = undone->earlier.empty();
  std::string next = std::string("`sudo ") + (goes ? "systemctl disable spark-staged && sudo " : "") +
                     "systemctl daemon-reload";
  for (const std::string& unit : undone->units) next += " && sudo systemctl enable " + printable(unit);
  next += goes ? "`, then reboot"
               : "`, take what this move added out of " + std::string(config::kDefaultPath) +
                     ", then reboot. The move of " + undone->earlier +
                     " stays: `sudo spark-stage import --undo` once more undoes it";
  tell(context, "Next: " + next);
  return 0;
}

Result<int> import(Context& context, const ImportOptions& options) {
  if (options.undoes) return undo(context);
  const host::Survey survey = host::survey(context.root);
  const auto imported = host::import_configuration(context.root, survey, context.timer.wall());
  if (options.is_dry_run) {
    if (!imported.items.empty()) print_plan(context, imported.items);
  } else if (options.output.empty()) {
    context.out << imported.yaml;
  } else if (auto written = write_new_file(options.output, imported.yaml); !written) {
    return written.take_error();
  }
  for (const std::string& sentence : survey.unread) tell(context, "Not read: " + printable(sentence));
  if (imported.items.empty() && survey.unread.empty()) {
    tell(context,
         "This host has no manual setup to import - "
         "`spark-stage discover ADDRESS --yaml` begins with a target");
  } else if (!options.is_dry_run) {
    tell(context, summary(imported));
  }
  return 0;
}

}  // namespace

void add_import(App& app) {
  const auto options = std::make_shared<ImportOptions>();
  Verb verb = app.verb("import", "make a configuration from fstab and units",
                       "  spark-stage import --dry-run\n"
                       "  sudo spark-stage import --output /etc/spark-stage/spark-stage.yaml\n"
                       "  sudo spark-stage import --undo",
                       [options](Context& context) -> Result<int> {
                         if (options->undoes && (options->is_dry_run || !options->output.empty()))
                           return fail(Errc::Invalid, "--undo goes without other options");
                         if (options->is_dry_run && !options->output.empty())
                           return fail(Errc::Invalid, "--dry-run writes no file",
                                       "leave out either --dry-run or --output");
                         return import(context, *options);
                       });
  verb.option("--output", "FILE", options->output, "a new file instead of standard output");
  verb.flag("--dry-run", options->is_dry_run, "show the imported and the omitted entries, and why");
  verb.flag("--undo", options->undoes, "restore fstab and units from the steps' copies");
}

}  // namespace spark::cli
