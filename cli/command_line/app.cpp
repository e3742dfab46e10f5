#include "cli/command_line/app.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/client/noted_client.hpp"
#include "cli/command_line/help.hpp"
#include "cli/command_line/manual.hpp"
#include "cli/command_line/mistakes.hpp"
#include "cli/command_line/parser_words.hpp"
#include "cli/say.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

constexpr char kProgram[] = "spark-stage";
constexpr char kSocketVariable[] = "SPARK_STAGE_SOCKET";

std::string socket_of(const std::string& option) {
  if (!option.empty()) return option;
  const char* variable = std::getenv(kSocketVariable);
  return variable != nullptr && *variable != '\0' ? variable : kDefaultSocket;
}

Terminal as_wanted(Terminal terminal, const std::string& colour, bool is_quiet) {
  if (colour == "always") terminal.colour = true;
  if (colour == "never") terminal.colour = false;
  terminal.is_quiet = is_quiet;
  return terminal;
}

}  // namespace

int report(Context& context, const Error& error) {
  context.out.flush();
  warn(context, kProgram + (": " + error.message()));
  return exit_status(error.kind);
}

// Shared with every verb: the help.
struct App::Parser {
  std::shared_ptr<Help> help = std::make_shared<Help>();
  CLI::App root{"Shared NVMe/TCP volumes and staged datasets for DGX Spark training nodes.", kProgram};
};

App::App() : parser_(std::make_unique<Parser>()) {
  CLI::App& root = parser_->root;
  root.set_version_flag("--version", version(), "this program's version");
  root.set_help_flag("-h,--help", "show this help; for a verb: spark-stage help VERB");
  add_common_options(root);
  root.require_subcommand(1);
  root.formatter(parser_->help);
  root.footer(help_footer());
}

App::~App() = default;

std::string App::version() {
  return std::string(kProgram) + " " + kVersion;
}

// Before a verb's name and behind it. Not CLI11's fallthrough for that: with it, a dataset named like a verb
// would be taken for the verb.
void App::add_common_options(CLI::App& parser) {
  Verb verb(parser);
  verb.option("--config", "FILE", common_.config,
              std::string("configuration (") + config::kDefaultPath + ")");
  verb.option("--socket", "PATH", common_.socket,
              std::string("the daemon's ($") + kSocketVariable + ", else\n" + kDefaultSocket + ")");
  verb.choice("--color", "WHEN", common_.color, {"auto", "always", "never"},
              "colours: auto (on a terminal, without $NO_COLOR),\nalways or never");
  verb.flag("-q,--quiet", common_.quiet, "no progress, no notes: errors alone on stderr");
  verb.flag("-v,--verbose", common_.verbose, "also show requests to the daemon, on stderr");
}

void App::section(const std::string& title) {
  section_ = title;
}

Verb App::verb(const std::string& name, const std::string& summary, const std::string& examples,
               Action action) {
  return add_verb(parser_->root, section_, {name, summary, examples, std::move(action)});
}

Verb App::group(const std::string& name, const std::string& summary, const std::string& examples) {
  const Verb group = verb(name, summary, examples, {});
  group.parser_->require_subcommand(1);
  return group;
}

Verb App::verb_of(const Verb& group, const std::string& name, const std::string& summary,
                  const std::string& examples, Action action) {
  return add_verb(*group.parser_, "Verbs", {name, summary, examples, std::move(action)});
}

Verb App::add_verb(CLI::App& parent, const std::string& section, NewVerb wanted) {
  CLI::App& verb = *parent.add_subcommand(wanted.name, wanted.summary);
  verb.group(section);
  verb.set_help_flag("-h,--help", "this text");
  verb.footer("Examples:\n" + wanted.examples);
  add_common_options(verb);
  for (const char* option : {"--config", "--socket", "--color", "--quiet", "--verbose"})
    verb.get_option(option)->group(Help::kEverywhere);
  if (wanted.action) {
    // CLI11 calls a verb after the verbs below it, which go first.
    verb.callback([this, &verb, action = std::move(wanted.action)] {
      if (verb.get_subcommands().empty()) action_ = action;
    });
  }
  return Verb(verb);
}

void App::add_to_usage(const Verb& verb, const std::string& words) {
  parser_->help->usage_ends[verb.parser_] = words;
}

void App::hide(const Verb& verb) {
  verb.parser_->group("");
}

Result<std::string> App::help(const std::vector<std::string>& words) const {
  const CLI::App* verb = &parser_->root;
  for (const std::string& word : words) {
    const CLI::App* inner = find_verb(*verb, word);
    if (inner == nullptr) return fail(no_such_verb(*verb, word));
    verb = inner;
  }
  return help_of(*verb);
}

std::string App::manual(std::string page) const {
  return fill_manual(parser_->root, std::move(page));
}

Completion App::complete(const std::vector<std::string>& words) const {
  const CLI::App* verb = &parser_->root;
  const CLI::Option* waiting = nullptr;  // an option that still needs its value
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--") return {{}, "", true};
    const bool is_value = waiting != nullptr;
    waiting = nullptr;
    if (is_value) continue;
    if (words[i].starts_with('-')) {
      const CLI::Option* option = verb->get_option_no_throw(words[i]);
      if (option != nullptr && option->get_items_expected_min() > 0) waiting = option;
    } else {
      if (const CLI::App* inner = find_verb(*verb, words[i]); inner != nullptr) verb = inner;
    }
  }
  if (waiting != nullptr) {
    const std::string type = waiting->get_type_name(), path = path_of(*verb);
    return {choices_of(*waiting), path.substr(path.find(' ') + 1) + " " + waiting->get_name(),
            type == "FILE" || type == "FOLDER" || type == "PATH"};
  }
  if (!words.empty() && words.back().starts_with('-')) return {option_names(*verb), "", false};
  const auto names = verb_names(*verb);
  if (verb->get_require_subcommand_min() > 0) return {names, "", false};
  const std::string path = path_of(*verb);
  return {names, path.substr(path.find(' ') + 1), false};
}

std::vector<std::vector<std::string>> App::verbs() const {
  std::vector<std::vector<std::string>> all;
  const std::function<void(const CLI::App&, std::vector<std::string>)> walk = [&](const CLI::App& parser,
                                                                                  const auto& path) {
    for (const std::string& name : verb_names(parser)) {
      std::vector<std::string> inner = path;
      inner.push_back(name);
      all.push_back(inner);
      walk(*parser.get_subcommand(name), inner);
    }
  };
  walk(parser_->root, {});
  return all;
}

namespace {

std::vector<std::string> words_behind(const std::vector<std::string>& arguments, const std::string& verb) {
  const auto at = std::find(arguments.begin(), arguments.end(), verb);
  return {at + 1, std::find(at, arguments.end(), "--")};
}

// Not a question for help.
bool is_run_without_dashes(const CLI::App& root, const std::vector<std::string>& arguments) {
  if (first_word(root, arguments) != "run") return false;
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const std::string& word) { return word == "-h" || word == "--help"; });
}

}  // namespace

void App::prepare(Context& context) const {
  context.socket = socket_of(common_.socket);
  context.config_file = common_.config.empty() ? config::kDefaultPath : common_.config;
  const ClientNotes notes{.on_version = !common_.quiet, .on_requests = common_.verbose};
  context.client = make_noted(context.make_client(context.socket), notes, context.err, context.timer);
  context.terminal = as_wanted(context.terminal, common_.color, common_.quiet);
  context.look_at_terminal = [look = context.look_at_terminal, common = common_] {
    return as_wanted(look(), common.color, common.quiet);
  };
}

int App::run(Context& context, std::vector<std::string> arguments) {
  CLI::App& root = parser_->root;
  if (arguments.empty()) {
    context.err << short_help();
    return exit_status(Errc::Invalid);
  }
  if (takes_command(root, arguments)) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) context.command.assign(dashes + 1, arguments.end());
    if (context.command.empty() && is_run_without_dashes(root, arguments)) {
      return report(context, without_dashes(words_behind(arguments, "run")));
    }
    arguments.erase(dashes, arguments.end());
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    context.out << help_of(innermost(root));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    context.out << version.what() << "\n";
    return 0;
  } catch (const CLI::ParseError& error) {
    return report(context, explain(root, error));
  }
  for (const char* option : {"--config", "--socket", "--color"}) {
    if (root.count(option) == 0 || innermost(root).count(option) == 0) continue;
    return report(context, {Errc::Invalid, std::string(option) + " is given twice", "give it once"});
  }
  prepare(context);
  const auto status = action_(context);
  if (!status) return report(context, status.error());
  context.out.flush();
  if (context.out.good()) return *status;
  return report(context,
                {Errc::Failed, "writing to standard output failed", "is the disk full or the pipe closed?"});
}

}  // namespace spark::cli
