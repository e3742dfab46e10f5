// `bench`, its verbs, and their shared code.
#pragma once

#include "bench/measure/bench.hpp"
#include "cli/command_line/app.hpp"

namespace spark::cli {

void add_bench(App& app);

// The job: from --demand, --like, --epochs and --dataset.
struct BenchQuestion {
  std::string like, dataset;
  Bytes demand = 0;  // bytes per second; 0: not given
  std::optional<Bytes> target_memory;
  unsigned epochs = 0, nodes = 0;

  void add_to(Verb& verb);
};
// Puts the options into `asked`. A dataset's name is looked up in the configuration and its files counted.
Result<> ask(Context& context, const BenchQuestion& question, bench::AskedFor& asked);

// The folder of a dataset: of a name in the configuration, of VOLUME:PATH, or the given one.
Result<std::string> dataset_folder(Context& context, const std::string& name);

// Takes the demand from the newest `bench demand`, where the user gave none and it was of the same dataset,
// by its name or by the variable of its staged copy.
Result<> use_measured_demand(Context& context, const std::filesystem::path& runs, bench::AskedFor& asked);

// Every configured volume that is ready, and the cache's drive as "local", as the daemon knows them.
// Unavailable without a daemon, with the command to type instead.
Result<std::vector<bench::PathUnderTest>> configured_paths(Context& context);

// Writes where --json, --html and their like say; "-" is stdout.
Result<> write_report(Context& context, const std::string& file, const std::string& text,
                      const std::string& what);

// The measurements, of this host or of several at once.
struct Measured {
  bench::Record record;  // of several hosts: their mean
  std::string hosts;     // each host's rates, as a table; empty: this host measured alone
};

// Measures on these hosts and on this one, cell by cell at once. Every Error names its host.
Result<Measured> measure_together(Context& context, bench::BenchOptions options,
                                  const std::vector<std::string>& hosts, const bench::ProgressSink& show);

// Runs on one of those hosts: waits for a line on stdin before each cell, and sends its record to stdout.
Result<int> measure_in_step(Context& context, bench::BenchOptions options);

void add_bench_demand(App& app, const Verb& bench, const std::shared_ptr<std::string>& runs);
void add_bench_reports(App& app, const Verb& bench, const std::shared_ptr<std::string>& runs);

// Of this user, unless another one was given.
std::filesystem::path runs_folder(const Context& context, const std::string& given);

}  // namespace spark::cli
