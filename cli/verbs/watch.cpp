#include "cli/verbs/watch.hpp"

#include <sstream>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/status.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr Duration kShortest{100};

std::string in_words(Duration interval) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(interval);
  return seconds == interval ? format_left(seconds) : format_duration(interval);
}

class Watch {
 public:
  Watch(Context& context, const WatchOptions& options)
      : context_(context), options_(options), first_look_(context.timer.wall()) {}

  // One refresh. A permanent error ends the watch.
  Result<> look() {
    auto status = ask_status(context_);
    if (status) status = about(std::move(*status), options_.names);
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
        rfc3339(context_.timer.wall()) + ", every " + in_words(options_.interval) + "; ^C ends it";
    frame += "\x1b[H" + coloured(title, Colour::Faint, terminal.colour) + "\x1b[K\n\x1b[K\n";
    for (const std::string& line : lines) frame += line + "\x1b[K\n";
    context_.out << frame << "\x1b[J" << std::flush;
  }

  Context& context_;
  const WatchOptions options_;
  const WallTime first_look_;
  std::string appended_;  // the last block, as of the first look
  std::string said_;      // of a daemon that is away
  bool is_drawn_ = false;
};

}  // namespace

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

Result<int> watch_status(Context& context, const WatchOptions& options) {
  context.catch_interrupts();
  Watch watch(context, options);
  while (!context.stop && context.out.good()) {
    if (auto looked = watch.look(); !looked) {
      watch.end();
      return looked.take_error();
    }
    context.timer.sleep(options.interval);
  }
  watch.end();
  return exit_status(Errc::Cancelled);
}

}  // namespace spark::cli
