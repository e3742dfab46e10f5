#include "cli/app.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/say.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

constexpr char kProgram[] = "spark-stage";
constexpr char kSocketVariable[] = "SPARK_STAGE_SOCKET";

constexpr char kExamples[] =
    "  spark-stage discover 192.168.0.100 --yaml   a configuration to start from\n"
    "  spark-stage status                          volumes, staging, cache\n"
    "  spark-stage stage imagenet                  puts it on the local NVMe\n"
    "  spark-stage run imagenet -- python train.py starts when it is there, with its\n"
    "                                              path in SPARK_STAGE_IMAGENET\n"
    "  spark-stage bench --like unet3d             stage first, or train directly?";

constexpr char kExitStatuses[] =
    "Exit status: 0 done, 1 failed, 2 usage or config, 3 no such thing,\n"
    "4 not available, 5 no space, 6 data does not match, 7 refused for safety,\n"
    "124 timed out, 130 interrupted; run passes its command's.";

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

// The innermost verb that was recognised.
const CLI::App& innermost(const CLI::App& parser) {
  const CLI::App* verb = &parser;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

// The first word that is neither an option nor an option's value.
std::string first_word(const CLI::App& parser, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with('-')) return arguments[i];
    const CLI::Option* option = parser.get_option_no_throw(arguments[i]);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
  }
  return {};
}

// Verbs that run what stands behind `--`.
bool takes_command(const CLI::App& root, const std::vector<std::string>& arguments) {
  const std::string verb = first_word(root, arguments);
  if (verb != "bench") return verb == "run" || verb == "complete";
  const auto bench = std::find(arguments.begin(), arguments.end(), verb);
  return first_word(*root.get_subcommand(verb), {bench + 1, arguments.end()}) == "demand";
}

// "spark-stage volumes up": the verb that was recognised, as it is typed.
std::string path_of(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name() : path_of(*verb.get_parent()) + " " + verb.get_name();
}

std::string see_help(const CLI::App& verb) {
  return "see '" + path_of(verb) + " --help'";
}

// "there is no verb 'statsu' - did you mean 'status'?"; no value when no word was left over.
std::optional<Error> explain_left_over(const CLI::App& parser) {
  const CLI::App& verb = innermost(parser);
  const std::vector<std::string> left = verb.remaining();
  const std::vector<std::string> names = verb_names(verb);
  const auto suggest = [&](const std::string& word, const std::vector<std::string>& known) {
    const std::string near = nearest(word, known);
    return near.empty() ? see_help(verb) : "did you mean '" + near + "'?";
  };
  const auto word = std::find_if(left.begin(), left.end(), [](const auto& w) { return !w.starts_with('-'); });
  if (word != left.end() && !names.empty()) {
    return Error{Errc::Invalid, "there is no verb '" + printable(*word) + "'", suggest(*word, names)};
  }
  if (left.empty()) return std::nullopt;
  const std::string first = printable(left.front());
  if (left.front().starts_with('-')) {
    return Error{Errc::Invalid, "there is no option '" + first + "' of '" + path_of(verb) + "'",
                 suggest(left.front(), option_names(verb))};
  }
  return Error{Errc::Invalid, "'" + path_of(verb) + "' does not take '" + first + "'", see_help(verb)};
}

std::string socket_of(const std::string& option) {
  if (!option.empty()) return option;
  const char* variable = std::getenv(kSocketVariable);
  return variable != nullptr && *variable != '\0' ? variable : kDefaultSocket;
}

// CLI11's help with usage lines and options in our words.
class Help final : public CLI::Formatter {
 public:
  std::map<const CLI::App*, std::string> usage_ends;

  std::string make_usage(const CLI::App* app, std::string name) const override {
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

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    const bool may_lack_value =
        option->get_items_expected_min() == 0 && option->get_items_expected_max() == 1;
    if (type.empty()) return "";
    return may_lack_value ? "[=" + type + "]" : " " + type;
  }
};

int usage_error(const CLI::App& parser, const CLI::ParseError& error, Context& context) {
  if (const auto left_over = explain_left_over(parser)) return report(context, *left_over);
  const CLI::App& verb = innermost(parser);
  if (error.get_name() == "RequiredError" && !verb_names(verb).empty()) {
    return report(context, {Errc::Invalid, "which verb? " + join(verb_names(verb), ", "), see_help(verb)});
  }
  Error explained = explain_value(verb, error).value_or(Error{Errc::Invalid, error.what(), ""});
  explained.what = "'" + path_of(verb) + "': " + explained.what;
  if (explained.hint.empty()) explained.hint = see_help(verb);
  return report(context, explained);
}

}  // namespace

int report(Context& context, const Error& error) {
  context.out.flush();
  tell(context, kProgram + (": " + error.message()));
  return exit_status(error.kind);
}

// Shared with every verb: the help.
struct App::Parser {
  std::shared_ptr<Help> help = std::make_shared<Help>();
  CLI::App root{"Shared NVMe/TCP volumes and staged datasets for DGX Spark training nodes.", kProgram};
};

App::App() : parser_(std::make_unique<Parser>()) {
  CLI::App& root = parser_->root;
  root.set_version_flag("--version", std::string(kProgram) + " " + kVersion, "this program's version");
  root.set_help_flag("-h,--help", "this text; of a verb: spark-stage VERB --help");
  root.add_option("--config", config_, std::string("configuration (") + config::kDefaultPath + ")")
      ->type_name("FILE");
  root.add_option("--socket", socket_,
                  std::string("the daemon's ($") + kSocketVariable + ", else\n" + kDefaultSocket + ")")
      ->type_name("PATH");
  root.require_subcommand(1);
  parser_->help->column_width(24);
  parser_->help->label("Positionals", "Arguments");
  root.formatter(parser_->help);
  root.footer(std::string("Examples:\n") + kExamples + "\n\n" + kExitStatuses);
}

App::~App() = default;

Verb App::verb(const std::string& name, const std::string& summary, const std::string& examples,
               Action action) {
  return verb_of(Verb(parser_->root), name, summary, examples, std::move(action));
}

Verb App::group(const std::string& name, const std::string& summary, const std::string& examples) {
  const Verb group = verb(name, summary, examples, {});
  group.parser_->require_subcommand(1);
  return group;
}

Verb App::verb_of(const Verb& group, const std::string& name, const std::string& summary,
                  const std::string& examples, Action action) {
  CLI::App& verb = *group.parser_->add_subcommand(name, summary);
  verb.group("Verbs");
  verb.footer("Examples:\n" + examples);
  // Not CLI11's fallthrough: with it, a dataset named like a verb would be taken for the verb.
  verb.add_option("--config", config_, "another configuration file")->type_name("FILE");
  verb.add_option("--socket", socket_, "another daemon's socket")->type_name("PATH");
  if (action) {
    // CLI11 calls a verb after the verbs below it, which go first.
    verb.callback([this, &verb, action = std::move(action)] {
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

Completion App::complete(const std::vector<std::string>& words) const {
  const CLI::App* verb = &parser_->root;
  const CLI::Option* waiting = nullptr;  // an option whose value comes next
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--") return {{}, "", true};
    const bool is_value = waiting != nullptr;
    waiting = nullptr;
    if (is_value) continue;
    if (words[i].starts_with('-')) {
      const CLI::Option* option = verb->get_option_no_throw(words[i]);
      if (option != nullptr && option->get_items_expected_min() > 0) waiting = option;
    } else {
      const auto inner =
          verb->get_subcommands([&](const CLI::App* app) { return app->get_name() == words[i]; });
      if (!inner.empty()) verb = inner.front();
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

int App::run(Context& context, std::vector<std::string> arguments) {
  CLI::App& root = parser_->root;
  if (takes_command(root, arguments)) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) context.command.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& verb = innermost(root);
    context.out << verb.help(verb.get_parent() == nullptr ? "" : path_of(*verb.get_parent()));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    context.out << version.what() << "\n";
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(root, error, context);
  }
  for (const char* option : {"--config", "--socket"}) {
    if (root.count(option) == 0 || innermost(root).count(option) == 0) continue;
    return report(context, {Errc::Invalid, std::string(option) + " is given twice", "give it once"});
  }
  context.socket = socket_of(socket_);
  context.config_file = config_.empty() ? config::kDefaultPath : config_;
  context.client = context.make_client(context.socket);
  const auto status = action_(context);
  if (!status) return report(context, status.error());
  context.out.flush();
  if (context.out.good()) return *status;
  return report(context,
                {Errc::Failed, "writing to standard output failed", "is the disk full or the pipe closed?"});
}

}  // namespace spark::cli
