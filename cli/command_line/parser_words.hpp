// The names of verbs and options in the tree of CLI11's parsers.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
}  // namespace CLI

namespace spark::cli {

std::vector<std::string> verb_names(const CLI::App& parser);  // without those that the help leaves out
std::vector<std::string> option_names(const CLI::App& parser);

// The innermost verb that was recognised.
const CLI::App& innermost(const CLI::App& parser);

// "spark-stage volumes up": the verb as it is typed.
std::string path_of(const CLI::App& verb);

// The verb below this one by that name, also one that the help leaves out; none: nullptr.
const CLI::App* find_verb(const CLI::App& parser, const std::string& name);

// The first word that is neither an option nor an option's value.
std::string first_word(const CLI::App& parser, const std::vector<std::string>& arguments);

// Verbs that run the command after `--`.
bool takes_command(const CLI::App& root, const std::vector<std::string>& arguments);

}  // namespace spark::cli
