#include "bench/bench.hpp"

#include "base/text.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

constexpr std::chrono::seconds kPlainInterval{15};

struct Options {
  std::vector<std::string> paths, scenarios;
  std::string size, runtime, json_file;
  unsigned rounds = 0;
  std::uint64_t seed = 0;
  bool is_quick = false;
};

Result<bench::BenchOptions> parse(const Options& given) {
  bench::BenchOptions options;
  for (const std::string& argument : given.paths) {
    auto path = bench::parse_path_argument(argument);
    if (!path) return tl::unexpected<Error>(std::move(path.error()));
    options.paths.push_back(std::move(*path));
  }
  options.scenarios = given.scenarios;
  if (!given.size.empty()) {
    const auto size = parse_bytes(given.size);
    if (!size) return fail_with(size.error(), "--size");
    options.size = *size;
  }
  if (!given.runtime.empty()) {
    const auto runtime = parse_duration(given.runtime);
    if (!runtime) return fail_with(runtime.error(), "--runtime");
    options.runtime = std::chrono::ceil<std::chrono::seconds>(*runtime);
  }
  if (given.rounds > 0) options.rounds = given.rounds;
  if (given.seed > 0) options.seed = given.seed;
  return given.is_quick ? bench::quick(std::move(options)) : options;
}

// One line that is redrawn on a terminal; elsewhere a line at each step, and now and then within one.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context) : context_(context) {}
  ~ProgressLine() {
    if (context_.terminal.err) context_.err << "\r\x1b[2K" << std::flush;
  }

  void show(const bench::Progress& progress) {
    if (context_.terminal.err) {
      context_.err << "\r\x1b[2K" << bench::progress_line(progress) << std::flush;
      return;
    }
    const SteadyTime now = context_.timer.steady();
    const std::string step = progress.doing + progress.path + std::to_string(progress.cell);
    if (step == step_ && now - printed_ < kPlainInterval) return;
    context_.err << bench::progress_line(progress) << std::endl;
    step_ = step;
    printed_ = now;
  }

 private:
  Context& context_;
  std::string step_;
  SteadyTime printed_{};
};

Result<bench::Record> measure(Context& context, const bench::BenchOptions& options) {
  context.err << "Measuring " << options.paths.size() << (options.paths.size() == 1 ? " path" : " paths")
              << ", about " << format_duration(bench::estimate(options)) << "; ^C ends it and tidies up.\n";
  ProgressLine line(context);
  return context.bench(
      options, [&](const bench::Progress& progress) { line.show(progress); }, context.stop);
}

Result<int> bench(Context& context, const Options& given) {
  const auto options = parse(given);
  if (!options) return tl::unexpected<Error>(options.error());
  context.catch_interrupts();
  const auto record = measure(context, *options);
  if (!record) return tl::unexpected<Error>(record.error());
  if (given.json_file == "-") {
    context.out << bench::json_text(*record);
  } else {
    context.out << bench::text_table(*record);
  }
  if (!given.json_file.empty() && given.json_file != "-") {
    const auto file = std::filesystem::absolute(given.json_file);
    if (auto written = write_file_atomically(file, bench::json_text(*record)); !written) {
      return fail_with(written.error(), "writing the record");
    }
    context.err << "The whole record is in " << printable(given.json_file) << "\n";
  }
  if (record->interrupted)
    return fail(Errc::Cancelled, "interrupted", "the table has what was measured until then");
  return 0;
}

}  // namespace

void add_bench(App& app) {
  const auto options = std::make_shared<Options>();
  Verb verb = app.verb("bench", "measure paths side by side (no daemon)",
                       "  spark-stage bench nvme-tcp=/mnt/a nfs=/mnt/b local=/var/c\n"
                       "  spark-stage bench nfs=/mnt/b local=/var/c --quick --json run.json\n"
                       "  spark-stage bench local=/var/c --size 16GiB --runtime 30s --rounds 5\n\n"
                       "It works in folders that it makes and removes. Where it may not write, it reads\n"
                       "files that are there already.",
                       [options](Context& context) { return bench(context, *options); });
  verb.argument("PATH", options->paths, "a folder to measure, with a name for it: NAME=PATH");
  verb.option("--scenario", "ID", options->scenarios, "this one only; may be repeated");
  verb.option("--size", "SIZE", options->size, "of the file in each path (4GiB)");
  verb.option("--runtime", "TIME", options->runtime, "of each measurement (5s)");
  verb.option("--rounds", "N", options->rounds, "of all measurements (3)");
  verb.option("--seed", "N", options->seed, "repeats a run's order of measurements");
  verb.flag("--quick", options->is_quick, "2 s each, 1 GiB: a first impression");
  verb.option("--json", "FILE", options->json_file, "write the whole record there; -: to stdout");
}

}  // namespace spark::cli
