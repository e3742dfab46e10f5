#include "cli/status.hpp"

#include <sstream>

#include "base/text.hpp"
#include "cli/say.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

struct StatusOptions {
  std::vector<std::string> names;
  std::string watch;  // seconds; empty: one look
  bool as_json = false;
};

constexpr Duration kShortest{100};

std::string in_words(Duration interval) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(interval);
  return seconds == interval ? format_left(seconds) : format_duration(interval);
}

Result<json::object> ask_about(Context& context, const StatusOptions& options) {
  auto status = ask_status(context);
  return status ? about(std::move(*status), options.names) : status;
}

// The same screen again and again, until ^C: on a terminal redrawn in place; elsewhere with its time, when it
// changed. As JSON: one object a line. Goes on over restarts of the daemon.
class Watch {
 public:
  Watch(Context& context, const StatusOptions& options, Duration interval)
      : context_(context), options_(options), interval_(interval), first_look_(context.timer.wall()) {}

  // One refresh. A permanent error ends the watch.
  Result<> look() {
    const auto status = ask_about(context_, options_);
    if (!status && status.error().kind != Errc::Unavailable) return status.take_error();
    context_.terminal = context_.look_at_terminal();
    const bool in_place = context_.terminal.redraws && !options_.as_json;
    const std::string trouble = status ? "" : "spark-stage: " + status.error().what + " - still trying";
    if (in_place) {
      redraw(trouble.empty() ? screen_of(*status, context_.timer.wall())
                             : sentence(trouble, context_.terminal.columns, true));
    } else if (!trouble.empty()) {
      if (std::exchange(said_, trouble) != trouble) context_.err << trouble << std::endl;
    } else if (options_.as_json) {
      context_.out << json::serialize(*status) << std::endl;
    } else {
      append(*status);
    }
    if (trouble.empty()) said_.clear();
    return {};
  }

  // The cursor is below the screen already.
  void end() {
    if (is_drawn_) context_.out << "\n" << std::flush;
  }

 private:
  std::string screen_of(const json::object& status, WallTime now) const {
    std::ostringstream text;
    print_status(text, context_.terminal, status, now);
    return text.str();
  }

  // Ages alone are no change: both screens are of one moment.
  void append(const json::object& status) {
    const std::string at_first_look = screen_of(status, first_look_);
    if (at_first_look == appended_) return;
    if (!appended_.empty()) context_.out << "\n";
    const WallTime now = context_.timer.wall();
    context_.out << rfc3339(now) << "\n" << screen_of(status, now) << std::flush;
    appended_ = at_first_look;
  }

  // Overwrites the previous screen line by line, so that nothing flickers. The first time, the terminal's
  // content is scrolled away and not overwritten.
  void redraw(const std::string& screen) {
    const Terminal& terminal = context_.terminal;
    std::vector<std::string> lines = split(screen, '\n');
    lines.pop_back();                                          // behind the last line's end
    const std::size_t room = std::max(terminal.rows, 5U) - 3;  // title, empty line, cursor
    if (lines.size() > room) {
      const std::size_t more = lines.size() - room + 1;
      lines.resize(room - 1);
      lines.push_back("… " + counted(more, "more line") + ": a higher window, or `spark-stage status`");
    }
    std::string frame = std::exchange(is_drawn_, true) ? "" : std::string(terminal.rows, '\n');
    const std::string title =
        rfc3339(context_.timer.wall()) + ", every " + in_words(interval_) + "; ^C ends it";
    frame += "\x1b[H" + coloured(title, Colour::Faint, terminal.colour) + "\x1b[K\n\x1b[K\n";
    for (const std::string& line : lines) frame += line + "\x1b[K\n";
    context_.out << frame << "\x1b[J" << std::flush;
  }

  Context& context_;
  const StatusOptions& options_;
  const Duration interval_;
  const WallTime first_look_;
  std::string appended_;  // the last block, as of the first look
  std::string said_;      // of a daemon that is away
  bool is_drawn_ = false;
};

// "2", "0.5" (seconds), or "500ms", "1m"; at least a tenth of a second.
Result<Duration> parse_interval(const std::string& text) {
  constexpr double kDay = 86'400;
  if (const auto seconds = parse_number<double>(text)) {
    if (*seconds * 1000 >= kShortest.count() && *seconds <= kDay)
      return Duration(static_cast<Duration::rep>(*seconds * 1000));
  } else if (const auto duration = parse_duration(text)) {
    if (*duration >= kShortest && *duration <= Duration(86'400'000)) return *duration;
  }
  return fail(Errc::Invalid, "--watch: '" + printable(text) + "' is not between 0.1 and 86400 seconds",
              "for example: --watch=5");
}

// 130 when it is interrupted.
Result<int> watch_status(Context& context, const StatusOptions& options) {
  const auto interval = parse_interval(options.watch);
  if (!interval) return interval.take_error();
  context.catch_interrupts();
  Watch watch(context, options, *interval);
  while (!context.stop && context.out.good()) {
    if (auto looked = watch.look(); !looked) {
      watch.end();
      return looked.take_error();
    }
    context.timer.sleep(*interval);
  }
  watch.end();
  return exit_status(Errc::Cancelled);
}

Result<int> status(Context& context, const StatusOptions& options) {
  if (!options.watch.empty()) return watch_status(context, options);
  const auto answer = ask_about(context, options);
  if (!answer) return answer.take_error();
  if (options.as_json) return show_json(context, *answer);
  print_status(context.out, context.terminal, *answer, context.timer.wall());
  return 0;
}

}  // namespace

void add_status(App& app) {
  const auto options = std::make_shared<StatusOptions>();
  Verb verb = app.verb("status", "volumes, staging in progress, cache",
                       "  spark-stage status\n"
                       "  spark-stage status datasets        one volume\n"
                       "  spark-stage status --watch         again every 2 s, until ^C\n"
                       "  spark-stage status --watch=10 >> status.log          the changes\n"
                       "  spark-stage status --json | jq '.volumes[] | select(.state != \"ready\")'",
                       [options](Context& context) { return status(context, *options); });
  verb.optional_argument("NAME", options->names, "these volumes alone");
  verb.option_or("-w,--watch", "SECONDS", options->watch, "2", "refresh every SECONDS (2)");
  verb.flag("--json", options->as_json, "everything, as JSON; with --watch an object a line");
}

}  // namespace spark::cli
