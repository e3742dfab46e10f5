#include "cli/command_line/parser_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace spark::cli {

std::vector<std::string> verb_names(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::App* verb : parser.get_subcommands(nullptr)) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const CLI::App& innermost(const CLI::App& parser) {
  const CLI::App* verb = &parser;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

std::string path_of(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name() : path_of(*verb.get_parent()) + " " + verb.get_name();
}

const CLI::App* find_verb(const CLI::App& parser, const std::string& name) {
  const auto found = parser.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::string first_word(const CLI::App& parser, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with('-')) return arguments[i];
    const CLI::Option* option = parser.get_option_no_throw(arguments[i]);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
  }
  return {};
}

bool takes_command(const CLI::App& root, const std::vector<std::string>& arguments) {
  const std::string verb = first_word(root, arguments);
  if (verb != "bench") return verb == "run" || verb == "complete";
  const auto bench = std::find(arguments.begin(), arguments.end(), verb);
  return first_word(*root.get_subcommand(verb), {bench + 1, arguments.end()}) == "demand";
}

}  // namespace spark::cli
