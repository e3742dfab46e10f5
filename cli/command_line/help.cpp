#include "cli/command_line/help.hpp"

#include <utility>

#include "cli/command_line/parser_words.hpp"

namespace spark::cli {
namespace {

constexpr char kExamples[] =
    "  spark-stage discover 192.168.0.100 --yaml   a configuration to start from\n"
    "  spark-stage status                          volumes, staging, cache\n"
    "  spark-stage stage imagenet                  puts it on the local NVMe\n"
    "  spark-stage run imagenet -- python train.py starts when it is there, with its\n"
    "                                              path in SPARK_STAGE_IMAGENET\n"
    "  spark-stage bench --like unet3d             stage first, or train directly?\n";

constexpr char kExitStatuses[] =
    "Exit status: 0 done, 1 failed, 2 usage or config, 3 no such thing,\n"
    "4 not available, 5 no space, 6 data does not match, 7 refused for safety,\n"
    "124 timed out, 130 interrupted; run passes its command's.";

constexpr char kMore[] =
    "  spark-stage help                            all verbs\n"
    "  spark-stage help VERB                       one of them, with examples\n";

}  // namespace

Help::Help() {
  column_width(24);
  label("Positionals", "Arguments");
}

std::string Help::make_group(std::string group, bool is_positional,
                             std::vector<const CLI::Option*> options) const {
  if (group == kEverywhere) return "";
  return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
}

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at))
    text.erase(at, 1);
  return text;
}

std::string Help::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "\nUsage: " + name + " [OPTIONS]";
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    const std::string word = option->get_name(true) + (many ? "..." : "");
    usage += " " + (option->get_required() ? word : "[" + word + "]");
  }
  if (!app->get_subcommands(nullptr).empty()) {
    usage += app->get_require_subcommand_min() > 0 ? " VERB" : " [VERB]";
  }
  const auto end = usage_ends.find(app);
  return usage + (end == usage_ends.end() ? "" : " " + end->second) + "\n";
}

std::string Help::make_option_opts(const CLI::Option* option) const {
  const std::string type = option->get_type_name();
  const bool may_lack_value = option->get_items_expected_min() == 0 && option->get_items_expected_max() == 1;
  if (type.empty()) return "";
  return may_lack_value ? "[=" + type + "]" : " " + type;
}

std::string help_of(const CLI::App& verb) {
  // Not verb.help(), which gives that of a verb below, if one was recognised.
  return verb.get_formatter()->make_help(&verb, path_of(verb), CLI::AppFormatMode::Normal);
}

std::string short_help() {
  return std::string("Usage: spark-stage [OPTIONS] VERB\n\n") + kExamples + kMore;
}

std::string help_footer() {
  return std::string("Examples:\n") + kExamples + "\n" + kExitStatuses;
}

}  // namespace spark::cli
