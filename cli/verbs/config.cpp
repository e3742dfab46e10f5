#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

// A config that is not there is a mistake of the user's, like one that is wrong.
Result<config::Config> load(const std::string& file) {
  auto loaded = config::load(file);
  if (!loaded && loaded.error().kind == Errc::NotFound) {
    Error error = loaded.error();
    error.kind = Errc::Invalid;
    if (error.hint.empty()) error.hint = "`spark-stage discover ADDRESS --yaml` prints one to start from";
    return fail(std::move(error));
  }
  return loaded;
}

// The sizes are known while a daemon runs that watches these outputs.
void warn_of_room(Context& context, const config::Config& config) {
  const auto watched = call(*context.client, {"GET", "/v1/outputs", ""});
  if (!watched) return;
  for (const json::object& row : objects_in(*watched, "outputs")) {
    const auto one = config.outputs.find(get_text(row, "name"));
    if (one == config.outputs.end() || one->second.keep == 0) continue;
    const config::Output& output = one->second;
    const Bytes size = get_count(row, "newest_bytes") * std::max(1U, output.nodes),
                room = get_count(row, "volume_bytes");
    if (room == 0 || (output.keep + 1) * size <= room) continue;
    warn(context, "spark-stage: output " + output.name + ": keep: " + std::to_string(output.keep) +
                      " needs room for " + std::to_string(output.keep + 1) + " checkpoints of " +
                      format_bytes(size) + ", and volume " + output.volume + " has " + format_bytes(room));
  }
}

Result<int> check(Context& context, const std::string& given, bool as_json) {
  const std::string file = given.empty() ? context.config_file : given;
  const auto loaded = load(file);
  if (!loaded) return loaded.take_error();
  if (as_json)
    return show_json(context, json::object{{"file", file},
                                           {"targets", loaded->targets.size()},
                                           {"volumes", loaded->volumes.size()},
                                           {"datasets", loaded->datasets.size()}});
  warn_of_room(context, *loaded);
  say(context, printable(file) + ": valid - " + counted(loaded->targets.size(), "target") + ", " +
                   counted(loaded->volumes.size(), "volume") + ", " +
                   counted(loaded->datasets.size(), "dataset"));
  return 0;
}

// The active configuration is that of a running daemon: after an invalid edit the file differs from it. For
// another file than the installed one, or without a daemon: the configuration in that file.
Result<json::object> in_force(Context& context) {
  if (context.config_file == config::kDefaultPath) {
    auto answer = call(*context.client, {"GET", "/v1/config", ""});
    if (answer || answer.error().kind != Errc::Unavailable) return answer;
  }
  const auto loaded = load(context.config_file);
  if (!loaded) return loaded.take_error();
  return config::to_json(*loaded);
}

Result<int> show(Context& context, bool as_json) {
  const auto shown = in_force(context);
  if (!shown) return shown.take_error();
  const std::string text = as_json ? pretty(*shown) : config::to_yaml(*shown);
  context.out << text << (text.ends_with('\n') ? "" : "\n");
  return 0;
}

// The daemon plans, since only it knows the active configuration and the volumes in use. It gets the text of
// another file, because it may not be able to read the user's file.
Result<json::object> ask_for_plan(Context& context, const std::string& given) {
  std::string file = given;
  if (file.empty() && context.config_file != config::kDefaultPath) file = context.config_file;
  if (file.empty()) return call(*context.client, {"POST", "/v1/plan", ""});
  const auto loaded = load(file);  // so that a mistake in it needs no daemon
  if (!loaded) return loaded.take_error();
  auto text = read_file(file);
  if (!text) return text.take_error();
  const json::object body{{"yaml", std::move(*text)}, {"file", file}};
  return call(*context.client, {"POST", "/v1/plan", json::serialize(body)});
}

bool is_refused(const json::object& step) {
  return !get_text(step, "refused").empty();
}

// The effect of a reload on each volume: its changes under each other, at the same column.
void print_plan(Context& context, const json::object& plan) {
  std::ostream& out = context.out;
  const auto steps = objects_in(plan, "volumes");
  const auto settings = get_printable(plan, "settings");
  const bool is_idle = std::ranges::all_of(steps, [](const json::object& step) {
    return get_text(step, "action") == "nothing" && !is_refused(step);
  });
  if (is_idle && settings.empty()) return say(context, "Nothing would change.");
  std::size_t width = 0;
  for (const json::object& step : steps) width = std::max(width, display_width(get_shown(step, "name")));
  constexpr std::size_t kActionWidth = 9;  // "reconnect"
  for (const json::object& step : steps) {
    const std::string name = get_shown(step, "name"), action = get_shown(step, "action");
    out << name << std::string(width - display_width(name) + 2, ' ') << action;
    const std::size_t column = width + 2 + kActionWidth + 2;
    const std::size_t columns = context.terminal.out ? context.terminal.columns : std::string::npos;
    std::vector<std::string> words = get_printable(step, "changes");
    if (is_refused(step)) words.push_back("refused: " + get_shown(step, "refused"));
    if (words.empty()) out << "\n";
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string lines = wrapped(words[i], columns, column);
      const std::size_t used = i == 0 ? width + 2 + action.size() : 0;  // of the first line
      out << lines.substr(std::min(used, column - 1));
    }
  }
  for (const std::string& setting : settings) say(context, setting);
}

Result<int> plan(Context& context, const std::string& given, bool as_json) {
  const auto planned = ask_for_plan(context, given);
  if (!planned) return planned.take_error();
  if (as_json) {
    show_json(context, *planned);
  } else {
    print_plan(context, *planned);
  }
  return std::ranges::any_of(objects_in(*planned, "volumes"), is_refused) ? exit_status(Errc::Refused) : 0;
}

}  // namespace

void add_config(App& app) {
  Verb group = app.group("config", "check a configuration, plan its change, show it",
                         "  spark-stage config check\n"
                         "  spark-stage config plan && sudo systemctl reload spark-staged\n"
                         "  spark-stage config check ./new.yaml\n"
                         "  spark-stage config show --json");
  const auto file = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  Verb check_verb = app.verb_of(
      group, "check", "report every mistake, with file:line:column", "  spark-stage config check ./new.yaml",
      [file, as_json](Context& context) { return check(context, *file, *as_json); });
  check_verb.optional_argument("FILE", *file, "another file than the installed one");
  check_verb.flag("--json", *as_json, "number of targets, volumes and datasets, as JSON");
  Verb show_verb = app.verb_of(group, "show", "print the active configuration with every default",
                               "  spark-stage config show\n  spark-stage --config ./new.yaml config show",
                               [as_json](Context& context) { return show(context, *as_json); });
  show_verb.flag("--json", *as_json, "as JSON");
  Verb plan_verb = app.verb_of(group, "plan", "show the steps of a reload; 7: some are refused",
                               "  spark-stage config plan                the steps of a reload now\n"
                               "  spark-stage config plan ./new.yaml     if that file were installed",
                               [file, as_json](Context& context) { return plan(context, *file, *as_json); });
  plan_verb.optional_argument("FILE", *file, "another file than the installed one");
  plan_verb.flag("--json", *as_json, "as JSON");
}

}  // namespace spark::cli
