#include "bench/report/report.hpp"

#include "bench/hosts/merged_record.hpp"
#include "bench/verdict/verdict.hpp"

#include "cli/verbs/bench/bench.hpp"

namespace spark::cli {
namespace {

using Runs = std::shared_ptr<std::string>;

struct ReportOptions {
  std::string run, format = "text", html_file;
  BenchQuestion question;
};

std::string rendered(const bench::Record& record, const std::string& format) {
  if (format == "markdown") return bench::markdown(record);
  if (format == "json") return bench::json_text(record);
  return bench::text_table(record);
}

Result<int> report_run(Context& context, const ReportOptions& options, const std::string& runs) {
  auto record = bench::load_record(runs_folder(context, runs), options.run);
  if (!record) return record.take_error();
  if (auto asked = ask(context, options.question, record->asked); !asked) {
    return asked.take_error();
  }
  if (options.html_file.empty()) {
    context.out << rendered(*record, options.format);
    return 0;
  }
  if (auto written = write_report(context, options.html_file, bench::html_page(*record), "The page");
      !written) {
    return written.take_error();
  }
  return 0;
}

struct CompareOptions {
  std::string before, after;
  bool any_host = false, as_json = false;
};

Result<int> compare(Context& context, const CompareOptions& options, const std::string& runs) {
  const auto folder = runs_folder(context, runs);
  const auto before = bench::load_record(folder, options.before);
  if (!before) return before.take_error();
  const auto after = bench::load_record(folder, options.after);
  if (!after) return after.take_error();
  auto comparison = bench::compare_runs(*before, *after, options.any_host);
  if (!comparison) return comparison.take_error();
  context.out << (options.as_json ? pretty(bench::to_json(*comparison)) + "\n" : bench::text_of(*comparison));
  return 0;
}

Result<int> merge(Context& context, const std::vector<std::string>& names, const std::string& runs,
                  bool as_json) {
  std::vector<bench::Record> records;
  for (const std::string& name : names) {
    auto record = bench::load_record(runs_folder(context, runs), name);
    if (!record) return record.take_error();
    records.push_back(std::move(*record));
  }
  auto text = bench::merge_runs(records);
  if (!text) return text.take_error();
  const bench::Record merged = bench::merged_record(records);
  if (as_json) {
    context.out << bench::json_text(merged);
    return 0;
  }
  context.out << *text;
  for (const std::string& words : bench::sentences_of(bench::verdict_of(merged)))
    context.out << bench::wrapped(words, 2);
  return 0;
}

Result<int> list(Context& context, const std::string& runs, bool as_json) {
  const auto entries = bench::list_runs(runs_folder(context, runs));
  context.out << (as_json ? pretty(bench::to_json(entries)) + "\n" : bench::list_of_runs(entries));
  return 0;
}

void add_report(App& app, const Verb& bench, const Runs& runs) {
  const auto options = std::make_shared<ReportOptions>();
  Verb verb = app.verb_of(bench, "report", "show a run again: text, Markdown, JSON or a page",
                          "  spark-stage bench report last\n"
                          "  spark-stage bench report 20261120T162126Z-1f3a --html page.html\n"
                          "  spark-stage bench report ./record.json --like 8xresnet50 --epochs 90",
                          [=](Context& context) { return report_run(context, *options, *runs); });
  verb.argument("RUN", options->run, "its id or a part of it, 'last', a folder, a record.json");
  verb.choice("--format", "KIND", options->format, {"text", "markdown", "json"}, "text, markdown or json");
  verb.option("--html", "FILE", options->html_file, "write a page with charts there; -: to stdout");
  options->question.add_to(verb);
  verb.option("--runs", "FOLDER", *runs, "where runs are kept");
}

void add_compare(App& app, const Verb& bench, const Runs& runs) {
  const auto options = std::make_shared<CompareOptions>();
  Verb verb = app.verb_of(bench, "compare", "compare a run with an earlier one",
                          "  spark-stage bench compare 20261120T16 last\n"
                          "  spark-stage bench compare before.json after.json --any-host",
                          [=](Context& context) { return compare(context, *options, *runs); });
  verb.argument("BEFORE", options->before, "a run");
  verb.argument("AFTER", options->after, "another");
  verb.flag("--any-host", options->any_host, "compare runs of different hosts");
  verb.flag("--json", options->as_json, "the comparison, as JSON");
  verb.option("--runs", "FOLDER", *runs, "where runs are kept");
}

}  // namespace

void add_bench_reports(App& app, const Verb& bench, const Runs& runs) {
  add_report(app, bench, runs);
  add_compare(app, bench, runs);
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto merge_as_json = std::make_shared<bool>(false);
  Verb merge_verb =
      app.verb_of(bench, "merge", "combine the runs of several hosts",
                  "  srun -N 8 sh -c 'spark-stage bench nas=/mnt/nas --seed 1 --scenario shards \\\n"
                  "    --runtime 30s --json /mnt/nas/bench-$(hostname).json'\n"
                  "  spark-stage bench merge /mnt/nas/bench-*.json",
                  [=](Context& context) { return merge(context, *names, *runs, *merge_as_json); });
  merge_verb.argument("RUN", *names, "one of each host");
  merge_verb.flag("--json", *merge_as_json, "the merged record, as JSON");
  merge_verb.option("--runs", "FOLDER", *runs, "where runs are kept");
  const auto as_json = std::make_shared<bool>(false);
  Verb list_verb = app.verb_of(bench, "list", "list the kept runs", "  spark-stage bench list",
                               [=](Context& context) { return list(context, *runs, *as_json); });
  list_verb.flag("--json", *as_json, "the list, as JSON");
  list_verb.option("--runs", "FOLDER", *runs, "where runs are kept");
}

}  // namespace spark::cli
