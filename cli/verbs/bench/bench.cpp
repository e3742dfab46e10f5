#include "cli/verbs/bench/bench.hpp"

#include "base/text.hpp"
#include "bench/measure/plan.hpp"
#include "bench/report/report.hpp"
#include "cli/say.hpp"

namespace spark::cli {
namespace {

constexpr std::chrono::seconds kPlainBenchInterval{15};

struct BenchFlags {
  std::vector<std::string> paths, hosts;
  std::string json_file, html_file;
  bench::BenchOptions options;
  std::shared_ptr<std::string> runs = std::make_shared<std::string>();
  BenchQuestion question;
  unsigned rounds = 0, part = 0, parts = 1;
  std::uint64_t seed = 0, mean_file = 0;
  bool is_quick = false, is_dry = false;
  bool is_in_step = false;  // for another host, which knows the demand
};

Result<std::vector<bench::PathUnderTest>> paths_of(Context& context, const BenchFlags& given) {
  if (given.paths.empty()) return configured_paths(context);
  std::vector<bench::PathUnderTest> paths;
  for (const std::string& argument : given.paths) {
    auto path = bench::parse_path_argument(argument);
    if (!path) return path.take_error();
    paths.push_back(std::move(*path));
  }
  return paths;
}

Result<bench::BenchOptions> parse(Context& context, const BenchFlags& given) {
  bench::BenchOptions options = given.options;
  auto paths = paths_of(context, given);
  if (!paths) return paths.take_error();
  options.paths = std::move(*paths);
  options.root = context.root;
  // With --rounds, exactly that many.
  if (given.rounds > 0) options.rounds = options.max_rounds = given.rounds;
  if (given.seed > 0) options.seed = given.seed;
  if (auto asked = ask(context, given.question, options.asked); !asked) {
    return asked.take_error();
  }
  if (given.is_in_step) {  // the host that began it keeps all records
    options.asked.demand.mean_file = given.mean_file;
    options.part = {given.part, given.parts};
    return options;
  }
  options.runs_folder = runs_folder(context, *given.runs);
  if (options.asked.loads_model) return given.is_quick ? bench::quick(std::move(options)) : options;
  if (auto measured = use_measured_demand(context, options.runs_folder, options.asked); !measured) {
    return measured.take_error();
  }
  return given.is_quick ? bench::quick(std::move(options)) : options;
}

Result<std::chrono::seconds> parse_runtime(const std::string& text) {
  return parse_duration(text).map(
      [](Duration time) { return std::chrono::ceil<std::chrono::seconds>(time); });
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const bench::Scenario& scenario : bench::all_scenarios()) {
    names.emplace_back(scenario.id);
  }
  return names;
}

// One line that is redrawn on a terminal; elsewhere a line at each step, and now and then within one.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context) : context_(context) {}
  ~ProgressLine() {
    if (context_.terminal.err && !context_.terminal.is_quiet) context_.err << "\r\x1b[2K" << std::flush;
  }

  void show(const bench::Progress& progress) {
    if (context_.terminal.is_quiet) return;
    if (context_.terminal.err) {
      context_.err << "\r\x1b[2K" << cut_short(bench::progress_line(progress), context_.terminal.columns - 1)
                   << std::flush;
      return;
    }
    const SteadyTime now = context_.timer.steady();
    const std::string step = progress.doing + progress.path + std::to_string(progress.cell);
    if (step == step_ && now - printed_ < kPlainBenchInterval) return;
    context_.err << bench::progress_line(progress) << std::endl;
    step_ = step;
    printed_ = now;
  }

 private:
  Context& context_;
  std::string step_;
  SteadyTime printed_{};
};

Result<Measured> measure(Context& context, const bench::BenchOptions& options,
                         const std::vector<std::string>& hosts) {
  tell(context, "Measuring " + counted(options.paths.size(), "path") +
                    (hosts.empty() ? "" : " on " + counted(hosts.size() + 1, "host") + " at once") +
                    ", about " + format_duration(bench::estimate(options)) + "; ^C ends it and tidies up.");
  ProgressLine line(context);
  const bench::ProgressSink show = [&](const bench::Progress& progress) { line.show(progress); };
  if (!hosts.empty()) return measure_together(context, options, hosts, show);
  auto record = context.bench(options, show, context.stop);
  if (!record) return record.take_error();
  return Measured{std::move(*record), ""};
}

Result<> report_all(Context& context, const BenchFlags& given, const Measured& measured) {
  const bench::Record& record = measured.record;
  if (given.json_file != "-" && given.html_file != "-") {
    context.out << bench::text_table(record);
    if (!measured.hosts.empty()) context.out << "\n" << measured.hosts;
  }
  if (!given.json_file.empty()) {
    auto written = write_report(context, given.json_file, bench::json_text(record), "The whole record");
    if (!written) return written;
  }
  if (given.html_file.empty()) return {};
  return write_report(context, given.html_file, bench::html_page(record), "The page");
}

Result<int> bench(Context& context, const BenchFlags& given) {
  auto options = parse(context, given);
  if (!options) return options.take_error();
  if (!given.hosts.empty()) options->max_rounds = options->rounds;  // all hosts end with the same cell
  if (given.is_dry) {
    const auto text = bench::dry_run(*options);
    if (!text) return text.take_error();
    context.out << *text;
    return 0;
  }
  // Before anything is announced.
  if (const auto checked = bench::check_options(*options); !checked) return checked.take_error();
  const bench::AskedFor& asked = options->asked;
  if (given.is_quick && asked.demand.bytes_per_second <= 0 && asked.checkpoint == 0 && !asked.loads_model)
    tell(context,
         "The job's read rate is not known, so this run gives rates and a break-even, but no advice: "
         "measure it first with `spark-stage bench demand -- COMMAND`, or give --demand or --like.");
  context.catch_interrupts();
  if (given.is_in_step) return measure_in_step(context, std::move(*options));
  auto measured = measure(context, *options, given.hosts);
  if (!measured) return measured.take_error();
  if (auto reported = report_all(context, given, *measured); !reported) {
    return reported.take_error();
  }
  const bench::Record* record = &measured->record;
  tell(context,
       "Kept as " + record->run_id + ": `spark-stage bench report " + record->run_id + "` shows it again.");
  if (record->interrupted)
    return fail(Errc::Cancelled, "interrupted", "the table has the measurements until then");
  return bench::has_results(*record) ? 0 : exit_status(Errc::Failed);
}

}  // namespace

Result<> write_report(Context& context, const std::string& file, const std::string& text,
                      const std::string& what) {
  if (file == "-") {
    context.out << text;
    return {};
  }
  const auto path = absolute_path(file);
  if (!path) return path.take_error();
  if (auto written = write_file_atomically(*path, text); !written) {
    return fail_with(written.error(), "writing " + printable(file));
  }
  tell(context, what + " is in " + printable(file));
  return {};
}

namespace {

void add_measuring_options(Verb& verb, const std::shared_ptr<BenchFlags>& options) {
  verb.optional_argument("PATH", options->paths, "a folder to measure, with a name for it: NAME=PATH");
  options->question.add_to(verb);
  verb.flag("--quick", options->is_quick, "three rounds of the scenarios for a verdict, 1 GiB");
  verb.choice(
      "--scenario", "ID", options->options.scenarios, scenario_names(),
      "this one only; may be repeated: shards, stream,\nsamples, smallfiles, latency, demand, checkpoint,\n"
      "stagecopy; load-mmap, load-buffered, load-direct");
  verb.option(
      "--with", "HOST", options->hosts,
      "measure there at the same time, through ssh or, in a\nSlurm allocation, srun; may be repeated");
  verb.parsed("--size", "SIZE", options->options.size, parse_bytes, "size of the files in each path (4GiB)");
  verb.parsed("--runtime", "TIME", options->options.runtime, parse_runtime,
              "duration of each measurement (2s)");
  verb.option("--rounds", "N", options->rounds, "number of rounds (5, up to 9 until steady)");
  verb.parsed("--rate-limit", "RATE", options->options.rate_limit, parse_rate_with_unit,
              "never read or write faster, for busy hours");
  verb.option("--seed", "N", options->seed, "repeats a run's order of measurements");
  verb.flag("--dry-run", options->is_dry, "show the jobs and how long they take, do nothing");
  verb.option("--json", "FILE", options->json_file, "write the whole record there; -: to stdout");
  verb.option("--html", "FILE", options->html_file, "write a page with charts there");
  verb.option("--runs", "FOLDER", *options->runs, "where runs are kept");
}

// `bench run`, the name that users of other programs try first.
void add_run(App& app, const Verb& bench_verb) {
  const auto options = std::make_shared<BenchFlags>();
  Verb verb = app.verb_of(bench_verb, "run", "as `spark-stage bench` without a verb",
                          "  spark-stage bench run nfs=/mnt/b local=/var/c --quick",
                          [options](Context& context) { return bench(context, *options); });
  add_measuring_options(verb, options);
  app.hide(verb);
}

// Started by `bench --with` on the other hosts.
void add_in_step(App& app, const Verb& bench_verb) {
  const auto options = std::make_shared<BenchFlags>();
  options->is_in_step = true;
  Verb verb = app.verb_of(bench_verb, "in-step", "measure when another host says so",
                          "  spark-stage bench in-step nfs=/mnt/b",
                          [options](Context& context) { return bench(context, *options); });
  add_measuring_options(verb, options);
  verb.option("--mean-file", "BYTES", options->mean_file, "of the files that the job reads");
  verb.count("--part", options->part, {0, 10'000}, "of the files to read first, for this host");
  verb.count("--parts", options->parts, {1, 10'000}, "the hosts that read at once");
  app.hide(verb);
}

}  // namespace

void add_bench(App& app) {
  const auto options = std::make_shared<BenchFlags>();
  Verb verb = app.verb("bench", "measure paths side by side: stage first, or not?",
                       "  spark-stage bench                              every volume and the cache\n"
                       "  spark-stage bench nvme-tcp=/mnt/a nfs=/mnt/b local=/var/c --html page.html\n"
                       "  spark-stage bench --like unet3d --epochs 30 --dataset imagenet\n"
                       "  spark-stage bench --like model-load --dataset 16GB\n"
                       "  spark-stage bench --with spark2 --with spark3  three hosts at the same time\n"
                       "  spark-stage bench nfs=/mnt/b local=/var/c --quick --rate-limit 500MB/s\n"
                       "  spark-stage bench report last --format markdown\n\n"
                       "It works in folders that it makes and removes. Where it may not write, it reads\n"
                       "files that are there already. 'local' is where datasets are staged to. With\n"
                       "PATHs no daemon is needed. `spark-stage bench run` is the same. A folder named\n"
                       "like a verb is ./list.",
                       [options](Context& context) { return bench(context, *options); });
  add_measuring_options(verb, options);
  add_run(app, verb);
  add_in_step(app, verb);
  add_bench_demand(app, verb, options->runs);
  add_bench_reports(app, verb, options->runs);
}

}  // namespace spark::cli
