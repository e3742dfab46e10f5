#include <algorithm>
#include <cstdlib>

#include "base/file.hpp"
#include "base/text.hpp"
#include "bench/hosts/merged_record.hpp"
#include "bench/hosts/together.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/overlap.hpp"
#include "bench/report/report.hpp"
#include "cli/say.hpp"
#include "cli/verbs/bench/bench.hpp"

namespace spark::cli {
namespace {

constexpr std::chrono::minutes kToBegin{
    2};  // to be reached and to count the files of a dataset; to lay out files
constexpr std::chrono::seconds kBetween{30};  // a little behind, from cell to cell

// The same plan there, whatever that host has for defaults or has measured before.
Result<std::vector<std::string>> command_for(const bench::BenchOptions& options) {
  auto scenarios = bench::check_options(options);
  if (!scenarios) return scenarios.take_error();
  std::vector<std::string> words = {"spark-stage", "bench", "in-step", "--quiet"};
  // ssh begins in the user's home folder.
  for (const bench::PathUnderTest& path : options.paths)
    words.push_back(path.name + "=" + absolute_path(path.path).value_or(path.path).string());
  const auto add = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  for (const bench::Scenario* scenario : *scenarios) add("--scenario", scenario->id);
  add("--size", std::to_string(options.size));
  add("--runtime", std::to_string(options.runtime.count()) + "s");
  add("--rounds", std::to_string(options.rounds));
  add("--seed", std::to_string(*options.seed));
  if (options.rate_limit > 0) add("--rate-limit", std::to_string(options.rate_limit) + "B/s");
  const bench::AskedFor& asked = options.asked;
  // Not asked.folder: a link may lead to another folder there.
  if (!asked.dataset.empty())
    add("--dataset", asked.dataset.starts_with('.')
                         ? absolute_path(asked.dataset).value_or(asked.folder).string()
                         : asked.dataset);
  if (asked.demand.bytes_per_second > 0)
    add("--demand", std::to_string(static_cast<Bytes>(asked.demand.bytes_per_second)) + "B/s");
  if (asked.demand.mean_file > 0) add("--mean-file", std::to_string(asked.demand.mean_file));
  return words;
}

Result<> refuse_itself(const std::vector<std::string>& hosts) {
  const std::string name = host_name();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].empty() || hosts[i].starts_with('-'))
      return fail(Errc::Invalid, "--with: '" + printable(hosts[i]) + "' is no name of a host");
    if (hosts[i] == name || hosts[i].starts_with(name + ".") || hosts[i] == "localhost") {
      return fail(Errc::Invalid, "--with " + printable(hosts[i]) + " is this host, which measures anyway",
                  "name the other hosts");
    }
    if (std::find(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(i), hosts[i]) !=
        hosts.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fail(Errc::Invalid, "--with " + printable(hosts[i]) + " is given twice", "give it once");
    }
  }
  return {};
}

class TogetherRun {
 public:
  TogetherRun(Context& context, bench::BenchOptions options, const bench::ProgressSink& show)
      : context_(context), options_(std::move(options)), show_(show) {}

  Result<Measured> run(const std::vector<std::string>& hosts) {
    options_.max_rounds = options_.rounds;  // all end with the same cell
    if (!options_.seed) options_.seed = bench::random_seed();
    auto command = command_for(options_);
    if (!command) return command.take_error();
    const auto launcher = bench::launcher_for(std::getenv("SLURM_JOB_ID"));
    if (auto started = together_.start(launcher, hosts, *command); !started) return started.take_error();
    // A host that can't be reached is known before anything is written here.
    if (!step(0)) return fail(std::move(*problem_));
    options_.part = {0, static_cast<unsigned>(hosts.size() + 1)};
    options_.next_cell = [this](unsigned cell) { return step(cell); };
    auto record = context_.bench(options_, show_, context_.stop);
    if (problem_ && problem_->kind != Errc::Cancelled) return fail(std::move(*problem_));
    if (!record) return record.take_error();
    if (record->interrupted) return Measured{std::move(*record), ""};
    return merge(std::move(*record), hosts);
  }

 private:
  bool step(unsigned cell) {
    const auto stepped = together_.step(cell, patience_of(cell), context_.stop, [&](const std::string& host) {
      if (cell <= 1) show_({"waiting until it is ready", printable(host), 0, 0, 0, 0, 0, Duration(0)});
    });
    if (stepped) return true;
    problem_ = stepped.error();
    return false;
  }

  Duration patience_of(unsigned cell) const {
    if (cell == 0) return Duration(kToBegin);
    if (cell == 1) return bench::longest_run(options_, 0) + Duration(kToBegin);
    return std::max(bench::cell_deadline(options_), bench::layout_deadline(options_)) + Duration(kBetween);
  }

  Result<Measured> merge(bench::Record record, const std::vector<std::string>& hosts) {
    auto others = together_.records(bench::longest_run(options_, 1), context_.stop);
    if (!others) {
      keep_incomplete(std::move(record), others.error());
      return others.take_error();
    }
    std::vector<bench::Record> records = {std::move(record)};
    std::vector<std::string> doubts;  // cloned hosts have one name
    for (std::size_t i = 0; i < others->size(); ++i) {
      bench::Record& other = (*others)[i];
      const bool is_taken = std::ranges::any_of(
          records, [&](const bench::Record& one) { return one.host.name == other.host.name; });
      if (is_taken) {
        doubts.push_back(printable(hosts[i]) + " calls itself " + printable(other.host.name) +
                         ", like another one: if they are one host, it measured twice");
        other.host.name = hosts[i];
      }
      records.push_back(std::move(other));
    }
    std::vector<bench::Record> aligned = records;
    bench::align_clocks(aligned);
    auto table = bench::merge_runs(aligned);
    if (!table) return table.take_error();
    bench::Record merged = bench::merged_record(aligned);
    merged.warnings.insert(merged.warnings.end(), doubts.begin(), doubts.end());
    if (!options_.runs_folder.empty()) {
      if (auto kept = bench::keep_merged(options_.runs_folder, merged, records); !kept)
        merged.warnings.push_back(kept.error().message());
    }
    return Measured{std::move(merged), std::move(*table)};
  }

  // Its rates are those of a host beside others, not of one alone.
  void keep_incomplete(bench::Record record, const Error& why) const {
    if (options_.runs_folder.empty()) return;
    record.interrupted = true;
    record.warnings.push_back("measured while other hosts read, whose results are missing: " + why.message());
    (void)bench::keep_merged(options_.runs_folder, record, {});  // the error that is reported is the first
  }

  Context& context_;
  bench::BenchOptions options_;
  const bench::ProgressSink& show_;
  bench::Together together_;
  std::optional<Error> problem_;
};

}  // namespace

Result<Measured> measure_together(Context& context, bench::BenchOptions options,
                                  const std::vector<std::string>& hosts, const bench::ProgressSink& show) {
  if (auto good = refuse_itself(hosts); !good) return good.take_error();
  return TogetherRun(context, std::move(options), show).run(hosts);
}

Result<int> measure_in_step(Context& context, bench::BenchOptions options) {
  options.max_rounds = options.rounds;
  options.next_cell = [&](unsigned cell) {
    return bench::wait_for_word(STDIN_FILENO, context.out, cell, context.stop);
  };
  if (!options.next_cell(0)) return fail(Errc::Cancelled, "called off", "the host that began it has ended");
  auto record = context.bench(options, {}, context.stop);
  if (!record) return record.take_error();
  if (record->interrupted) return fail(Errc::Cancelled, "called off", "the host that began it has ended");
  bench::send_record(context.out, bench::to_json(*record));
  return 0;
}

}  // namespace spark::cli
