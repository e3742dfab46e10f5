#include "cli/command_line/mistakes.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/text.hpp"
#include "cli/command_line/parser_words.hpp"
#include "cli/command_line/verb.hpp"

namespace spark::cli {
namespace {

std::string see_help(const CLI::App& verb) {
  return "see `" + path_of(verb) + " --help`";
}

std::string suggest(const CLI::App& verb, const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? see_help(verb) : "did you mean '" + near + "'?";
}

// "there is no verb 'statsu' - did you mean 'status'?"; no value when no word was left over.
std::optional<Error> explain_left_over(const CLI::App& parser) {
  const CLI::App& verb = innermost(parser);
  const std::vector<std::string> left = verb.remaining();
  const std::vector<std::string> names = verb_names(verb);
  const auto word = std::find_if(left.begin(), left.end(), [](const auto& w) { return !w.starts_with('-'); });
  if (word != left.end() && !names.empty()) return no_such_verb(verb, *word);
  if (left.empty()) return std::nullopt;
  const std::string first = printable(left.front());
  if (left.front().starts_with('-')) {
    return Error{Errc::Invalid, "there is no option '" + first + "' of `" + path_of(verb) + "`",
                 suggest(verb, left.front(), option_names(verb))};
  }
  return Error{Errc::Invalid, "`" + path_of(verb) + "` does not take '" + first + "'", see_help(verb)};
}

// A path to one, or a name that $PATH has.
bool is_program(const std::string& word) {
  if (word.empty() || word.starts_with('-')) return false;
  if (word.find('/') != std::string::npos) return ::access(word.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (::access((folder + "/" + word).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

Error without_dashes(const std::vector<std::string>& words) {
  const auto is_word = [](const std::string& word) { return !word.starts_with('-'); };
  const auto dataset = std::find_if(words.begin(), words.end(), is_word);
  if (dataset == words.end()) {
    return {Errc::Invalid, "spark-stage run needs datasets, and a command behind --",
            "for example: spark-stage run imagenet -- python train.py"};
  }
  auto command = std::find_if(dataset + 1, words.end(), is_program);
  const bool is_guess = command != words.end();
  std::vector<std::string> better(words.begin(), command);
  better.push_back("--");
  if (is_guess) better.insert(better.end(), command, words.end());
  if (!is_guess) better.insert(better.end(), {"python", "train.py"});
  return {Errc::Invalid, "spark-stage run needs a command behind --",
          (is_guess ? "did you mean: spark-stage run " : "for example: spark-stage run ") +
              printable(join(better, " "))};
}

Error no_such_verb(const CLI::App& parser, const std::string& word) {
  return Error{Errc::Invalid, "there is no verb '" + printable(word) + "'",
               suggest(parser, word, verb_names(parser))};
}

Error explain(const CLI::App& root, const CLI::ParseError& error) {
  if (const auto left_over = explain_left_over(root)) return *left_over;
  const CLI::App& verb = innermost(root);
  if (error.get_name() == "RequiredError" && !verb_names(verb).empty()) {
    return {Errc::Invalid, "which verb? " + join(verb_names(verb), ", "), see_help(verb)};
  }
  Error explained = explain_value(verb, error).value_or(Error{Errc::Invalid, error.what(), ""});
  explained.what = "`" + path_of(verb) + "`: " + explained.what;
  if (explained.hint.empty()) explained.hint = see_help(verb);
  return explained;
}

}  // namespace spark::cli
