#include "base/text.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/plan.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

// Example names; each run generates a new name for its folder.
std::vector<DataFile> files_in(const PathUnderTest& path, const BenchOptions& options) {
  std::vector<DataFile> files;
  const std::string folder =
      path.path + (path.path.ends_with('/') ? "" : "/") + ".spark-stage-bench-NEW/data";
  for (unsigned i = 0; i < kLargeFiles; ++i) {
    files.push_back({folder + (i == 0 ? "" : std::to_string(i)), layout_size(options) / kLargeFiles});
  }
  return files;
}

std::string job_of(const Scenario& scenario, const PathUnderTest& path, const BenchOptions& options) {
  const FioSetup setup{options.fio, "io_uring", ""};
  return job_file(cell_command(setup, scenario,
                               deal_streams(files_in(path, options), scenario.streams, scenario.block),
                               {options.runtime, cell_rate(options, scenario)}));
}

std::string how(const Scenario& scenario, const BenchOptions& options) {
  if (scenario.method == Method::Copy) {
    const std::string bytes = format_bytes(layout_size(options) / kLargeFiles);
    return "copies " +
           (has_small_files(options.asked) ? "folders of small files, up to " + bytes + "," : bytes) +
           " to the local path with the staging engine";
  }
  if (scenario.method == Method::Load) {
    return "loads " + format_bytes(layout_size(options)) + " from each path, once in each round, by " +
           std::to_string(scenario.streams) + (scenario.streams == 1 ? " thread" : " threads");
  }
  return "opens, reads and closes " + std::to_string(small_file_count(options, {&scenario})) + " files of " +
         format_bytes(small_file_size(options.asked)) + " by " + std::to_string(scenario.streams) +
         " threads";
}

}  // namespace

Result<std::string> dry_run(const BenchOptions& options) {
  const auto scenarios = check_options(options);
  if (!scenarios) return scenarios.take_error();
  const bool may_be_more = options.max_rounds > options.rounds;
  const std::string rounds = std::to_string(options.rounds);
  std::string text = wrapped(
      "Nothing is measured or written (--dry-run). A run would take about " +
          format_duration(estimate(options)) +
          (may_be_more ? ", or up to " + format_duration(estimate_at_most(options)) + " if rounds differ"
                       : "") +
          ", need up to " + format_bytes(room_of(options, *scenarios)) +
          " of space in each path that may be written, and do the following " +
          (may_be_more ? rounds + " to " + std::to_string(options.max_rounds) : rounds) +
          " times, after a round to warm up:",
      0);
  for (const Scenario* scenario : *scenarios) {
    text += "\n# " + scenario->id + ": " + scenario->title + ", " + scenario->shape + ", " +
            to_string(scenario->cache) + "\n";
    if (scenario->method != Method::Fio) {
      text += "# " + how(*scenario, options) + "\n";
      continue;
    }
    for (const PathUnderTest& path : options.paths) {
      text += "# " + path.name + ": " + printable(path.path) + "\n" + job_of(*scenario, path, options);
    }
  }
  return text;
}

}  // namespace spark::bench
