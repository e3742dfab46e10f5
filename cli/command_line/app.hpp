// The command line: global options, the verbs, help by example, and errors turned into exit statuses.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/command_line/verb.hpp"
#include "cli/context.hpp"

namespace spark::cli {

// The action of a verb once its options are parsed. Returns its exit status, or an error that App prints.
using Action = std::function<Result<int>(Context&)>;

// The candidates for the last of some words.
struct Completion {
  std::vector<std::string> words;  // verbs, options, or choices of an option
  std::string verb;                // else an argument of this verb: "volumes up"; empty: nothing is known
  bool is_file = false;            // any file's name
};

class App {
 public:
  App();
  ~App();

  static std::string version();  // "spark-stage 0.1.0"

  // The verbs that are added from here on stand below this title in the help.
  void section(const std::string& title);

  // A verb with a one-line summary and examples of its use, one per line.
  Verb verb(const std::string& name, const std::string& summary, const std::string& examples, Action action);
  // A verb that only groups others ("volumes"), and one of those.
  Verb group(const std::string& name, const std::string& summary, const std::string& examples);
  Verb verb_of(const Verb& group, const std::string& name, const std::string& summary,
               const std::string& examples, Action action);

  // Every verb that is in the help, each after its group: {"volumes"}, {"volumes", "up"}, …
  std::vector<std::vector<std::string>> verbs() const;

  // Left out of the help: for other programs to call, or an old spelling.
  void hide(const Verb& verb);

  // Of the verb that these words name, each below the one before; of the program, if there are none.
  Result<std::string> help(const std::vector<std::string>& words) const;

  // The manual page: `page` with the help inserted at its markers (manual.hpp).
  std::string manual(std::string page) const;

  // For shells: the words of a command line behind the program's name, the last one being typed.
  Completion complete(const std::vector<std::string>& words) const;

  // The end of the usage line of a verb's help.
  void add_to_usage(const Verb& verb, const std::string& words);

  // Parses, runs the verb, prints its error if there is one. The process's exit status.
  int run(Context& context, std::vector<std::string> arguments);

 private:
  struct Parser;
  struct CommonOptions {
    std::string socket, config, color;
    bool quiet = false, verbose = false;
  };
  struct NewVerb {
    std::string name, summary, examples;
    Action action;
  };
  std::unique_ptr<Parser> parser_;
  Action action_;  // of the verb that was parsed
  CommonOptions common_;
  std::string section_;

  void add_common_options(CLI::App& parser);
  Verb add_verb(CLI::App& parent, const std::string& section, NewVerb wanted);
  void prepare(Context& context) const;
};

// Prints "spark-stage: SENTENCE" and gives the exit status of the error's kind.
int report(Context& context, const Error& error);

// Works on each item, whatever becomes of the others, until an interrupt; prints their errors. The exit
// status of the first that failed; 0: none did, and all are done.
template <typename Items, typename Work>
int for_each_item(Context& context, const Items& items, const Work& work) {
  int status = 0;
  for (const auto& item : items) {
    if (context.stop) return status == 0 ? exit_status(Errc::Cancelled) : status;
    const auto done = work(item);
    const int failed = done ? 0 : report(context, done.error());
    if (status == 0) status = failed;
  }
  return status;
}

}  // namespace spark::cli
