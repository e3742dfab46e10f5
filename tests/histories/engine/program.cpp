#include "tests/histories/engine/program.hpp"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/units.hpp"
#include "tests/histories/engine/found.hpp"

namespace spark::histories {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

// Seconds of real time. A history takes milliseconds, but `make check` runs them at the lowest priority.
constexpr unsigned kHangs = 900;
// A defect is shrunk for this long at most, and not after the time asked for with --for.
constexpr std::chrono::minutes kShrinks{3};
constexpr unsigned kTries = 3000;
constexpr std::uint64_t kFewSeeds = 200;  // too few to judge the share that an open defect claims

struct Options {
  std::uint64_t seed = 1, count = 1000;
  std::string lasts;   // run new seeds for this long instead of `count`
  std::string find;    // stop at the first history that violates this oracle
  std::string replay;  // a file or a seed
  fs::path found, out = "build/histories";
};

// For the signal handler: the history that crashes or hangs.
volatile std::uint64_t running_seed = 0;
char running_area[32];

void on_crash(int signal) {
  char text[160];
  const int length = std::snprintf(text, sizeof text, "\nFAILED %s: %s in the history of seed %llu\n",
                                   running_area, signal == SIGALRM ? "no end after 900 s" : "a crash",
                                   static_cast<unsigned long long>(running_seed));
  (void)!::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  ::_exit(1);
}

Outcome run_watched(const Area& area, const History& history, const Story& story = Story()) {
  running_seed = history.seed;
  ::alarm(kHangs);
  Outcome outcome = run(area, history, story);
  ::alarm(0);
  return outcome;
}

Outcome print_story(const Area& area, const History& history) {
  std::size_t line = 0;
  const Story story(
      [&](const std::string& sentence) { std::printf("%4zu  %s\n", ++line, sentence.c_str()); });
  Outcome outcome = run_watched(area, history, story);
  if (outcome.violation) {
    std::printf("  =>  %s: %s\n", outcome.violation->oracle.c_str(), outcome.violation->what.c_str());
  } else {
    std::printf("  =>  no promise was broken\n");
  }
  return outcome;
}

class Session {
 public:
  Session(const Area& area, Options options) : area_(area), options_(std::move(options)) {}

  int run_all() {
    if (const auto found = read_found(area_, options_.found); found) {
      found_ = *found;
    } else {
      return complain(found.error());
    }
    if (!options_.replay.empty()) return replay();
    for (const Found& one : found_) {
      if (one.is_open) open_.insert(one.oracle);
    }
    if (options_.find.empty()) {
      for (const Found& one : found_) check_found(one);
    }
    if (const auto ran = run_seeds(); !ran) return complain(ran.error());
    summarise();
    if (!options_.find.empty()) return is_found_ ? 0 : 1;
    return failures_ == 0 ? 0 : 1;
  }

 private:
  static int complain(const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 2;
  }

  int replay() {
    const auto history = history_named(options_.replay);
    if (!history) return complain(history.error());
    if (auto known = check_actions(area_, *history); !known) return complain(known.error());
    return print_story(area_, *history).violation ? 1 : 0;
  }

  // The history of a seed, or of a file.
  Result<History> history_named(const std::string& name) const {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seed);
    if (error == std::errc() && end == name.data() + name.size()) return generate(area_, seed);
    const auto text = read_file(name);
    if (!text) return text.take_error();
    return from_text(*text);
  }

  void check_found(const Found& one) {
    std::set<std::string> missed(one.reaches.begin(), one.reaches.end());
    const Story story = missed.empty() ? Story() : Story([&](const std::string& sentence) {
      std::erase_if(missed,
                    [&](const std::string& part) { return sentence.find(part) != std::string::npos; });
    });
    const Outcome outcome = run_watched(area_, one.history, story);
    const std::string oracle = outcome.violation ? outcome.violation->oracle : "";
    if (one.is_open ? oracle != one.oracle : !oracle.empty()) {
      ++failures_;
      std::printf(
          "FAILED %s: %s\n", one.file.c_str(),
          !one.is_open ? "a fixed defect is back"
          : oracle.empty()
              ? "it violates nothing any more. If its defect is fixed, write \"# fixed:\" for \"# open:\""
              : ("it violates " + oracle + " instead").c_str());
      if (!one.is_open) (void)print_story(area_, one.history);
    } else if (!missed.empty()) {
      ++failures_;
      std::printf("FAILED %s: its story does not reach \"%s\" any more, so it shows nothing: find it again\n",
                  one.file.c_str(), missed.begin()->c_str());
    }
  }

  Result<> run_seeds() {
    std::printf("%s: from seed %llu\n", area_.name.c_str(), static_cast<unsigned long long>(options_.seed));
    std::fflush(stdout);
    const SteadyClock::time_point begin = SteadyClock::now();
    if (!options_.lasts.empty()) {
      const auto lasts = parse_duration(options_.lasts);
      if (!lasts) return lasts.take_error();
      end_ = begin + *lasts;
    }
    for (std::uint64_t seed = options_.seed;; ++seed) {
      const bool is_over = end_ ? SteadyClock::now() >= *end_ : seed - options_.seed >= options_.count;
      if (is_over || is_found_) break;
      take_seed(seed);
    }
    seconds_ = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    return {};
  }

  void take_seed(std::uint64_t seed) {
    const History history = generate(area_, seed);
    const Outcome outcome = run_watched(area_, history);
    ++ran_;
    virtual_time_ += outcome.elapsed;
    if (!outcome.violation) return;
    const std::string& oracle = outcome.violation->oracle;
    ++violations_[oracle];
    if (!options_.find.empty()) {
      is_found_ = oracle == options_.find;
      if (is_found_) report(history, oracle);
      return;
    }
    if (open_.contains(oracle)) return;
    ++failures_;
    if (violations_[oracle] == 1) report(history, oracle);
  }

  // Once for each oracle: a shrunk history takes hundreds of runs.
  void report(const History& history, const std::string& oracle) {
    std::printf("%s %s: seed %llu violates %s, after %llu histories\n",
                options_.find.empty() ? "FAILED" : "found", area_.name.c_str(),
                static_cast<unsigned long long>(history.seed), oracle.c_str(),
                static_cast<unsigned long long>(ran_));
    std::fflush(stdout);
    const auto until = std::min(SteadyClock::now() + kShrinks, end_.value_or(SteadyClock::time_point::max()));
    ::alarm(kHangs);
    const History shrunk =
        shrink(area_, history, oracle, kTries, [until] { return SteadyClock::now() < until; });
    ::alarm(0);
    std::printf("%zu of %zu steps are needed:\n", shrunk.steps.size(), history.steps.size());
    (void)print_story(area_, shrunk);
    std::error_code ignored;
    fs::create_directories(options_.out, ignored);
    const fs::path file =
        options_.out / (area_.name + "-" + oracle + "-" + std::to_string(history.seed) + ".history");
    std::ofstream out(file);
    out << "# oracle: " << oracle << "\n# open: \n" << to_text(shrunk) << std::flush;
    std::printf("%s %s\n", out ? "written to" : "can't be written to", file.c_str());
    std::fflush(stdout);
  }

  void summarise() {
    const double hours = std::chrono::duration<double, std::ratio<3600>>(virtual_time_).count();
    std::printf(
        "%s: %llu histories from seed %llu in %.1f s: %.1f histories and %.1f virtual hours a second\n",
        area_.name.c_str(), static_cast<unsigned long long>(ran_),
        static_cast<unsigned long long>(options_.seed), seconds_, static_cast<double>(ran_) / seconds_,
        hours / seconds_);
    for (const auto& [oracle, times] : violations_) {
      const bool is_open = open_.contains(oracle);
      const double share = static_cast<double>(times) / static_cast<double>(ran_);
      std::printf("  %s: violated by %llu, %.2f %%%s\n", oracle.c_str(),
                  static_cast<unsigned long long>(times), 100 * share, is_open ? ", an open defect" : "");
      if (!is_open || ran_ < kFewSeeds || share <= area_.most_claimed || !options_.find.empty()) continue;
      ++failures_;
      std::printf(
          "FAILED %s: the open defect %s claims more than %.0f %% of the seeds: make its oracle finer\n",
          area_.name.c_str(), oracle.c_str(), 100 * area_.most_claimed);
    }
    if (!options_.find.empty()) return;
    std::printf("%s: %zu found before, %llu new: %llu failed\n", area_.name.c_str(), found_.size(),
                static_cast<unsigned long long>(ran_), static_cast<unsigned long long>(failures_));
  }

  const Area& area_;
  Options options_;
  std::vector<Found> found_;
  std::set<std::string> open_;  // oracles of open defects
  std::map<std::string, std::uint64_t> violations_;
  std::uint64_t ran_ = 0, failures_ = 0;
  Duration virtual_time_{0};
  double seconds_ = 0;
  std::optional<SteadyClock::time_point> end_;  // asked for with --for
  bool is_found_ = false;
};

}  // namespace

int history_main(const Area& area, int argc, char** argv) {
  Options options;
  options.found = fs::path("tests/histories") / area.name / "found";
  CLI::App app("Random histories of " + area.name + " in a simulated world: docs/testing.md");
  app.add_option("--seed", options.seed, "first seed (default 1)");
  app.add_option("--count", options.count, "number of seeds (default 1000)");
  app.add_option("--for", options.lasts, "run for this long instead, as in 1h");
  app.add_option("--find", options.find,
                 "stop at the first history that violates this oracle, and shrink it");
  app.add_option("--replay", options.replay, "print the story of a history: a file, or a seed");
  app.add_option("--found", options.found, "folder of histories that failed before");
  app.add_option("--out", options.out, "folder for new ones (default build/histories)");
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a history that crashes keeps its story
  std::snprintf(running_area, sizeof running_area, "%s", area.name.c_str());
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) ::signal(signal, on_crash);
  return Session(area, std::move(options)).run_all();
}

}  // namespace spark::histories
