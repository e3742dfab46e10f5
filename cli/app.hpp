// The command line: global options, the verbs, help by example, and errors turned into exit statuses.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/context.hpp"

namespace spark::cli {

// What a verb does once its options are parsed: its exit status, or an error that App prints.
using Action = std::function<Result<int>(Context&)>;

class Help;

class App {
 public:
  App();

  // A verb with what it does in one line and examples of its use, one a line.
  CLI::App& verb(const std::string& name, const std::string& summary, const std::string& examples,
                 Action action);
  // A verb that only groups others ("volumes"), and one of those.
  CLI::App& group(const std::string& name, const std::string& summary, const std::string& examples);
  CLI::App& verb_of(CLI::App& group, const std::string& name, const std::string& summary,
                    const std::string& examples, Action action);

  // What the usage line of a verb's help ends with.
  void add_to_usage(const CLI::App& verb, const std::string& words);

  // Parses, runs the verb, prints its error if there is one. The process's exit status.
  int run(Context& context, std::vector<std::string> arguments);

 private:
  void set_action(CLI::App& verb, Action action);
  int usage_error(const CLI::ParseError& error, Context& context);

  std::shared_ptr<Help> help_;  // shared with every verb
  CLI::App parser_;
  Action action_;  // of the verb that was parsed
  std::string socket_, config_;
};

// Prints "spark-stage: SENTENCE" and gives the exit status of the error's kind.
int report(Context& context, const Error& error);

}  // namespace spark::cli
