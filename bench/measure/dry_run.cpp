#include "base/text.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/plan.hpp"

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
  const double limit = static_cast<double>(options.rate_limit);
  const double rate = scenario.at_demand ? options.asked.demand.bytes_per_second : limit;
  const FioSetup setup{options.fio, "io_uring", ""};
  return job_file(cell_command(setup, scenario,
                               deal_streams(files_in(path, options), scenario.streams, scenario.block),
                               {options.runtime, rate}));
}

std::string how(const Scenario& scenario, const BenchOptions& options) {
  if (scenario.method == Method::Copy) {
    return "copies " + format_bytes(layout_size(options) / kLargeFiles) +
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
  std::string text = "Nothing is measured or written (--dry-run). A run would take about " +
                     format_duration(estimate(options)) + ",\nwrite " +
                     format_bytes(room_of(options, *scenarios)) +
                     " in each path that may be written,\nand do the following " +
                     std::to_string(options.rounds) + " times, after a round to warm up:\n";
  for (const Scenario* scenario : *scenarios) {
    text += "\n# " + std::string(scenario->id) + ": " + std::string(scenario->title) + ", " +
            std::string(scenario->shape) + ", " + to_string(scenario->cache) + "\n";
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
