#include <algorithm>

#include "base/text.hpp"
#include "base/version.hpp"
#include "bench/facts/host_facts.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/bench_target.hpp"
#include "bench/measure/cell_meter.hpp"
#include "bench/measure/copy_work.hpp"
#include "bench/measure/counter_snapshot.hpp"
#include "bench/measure/fio_environment.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/gates.hpp"

namespace spark::bench {
namespace {

std::string title_of(const Scenario& scenario) {
  return scenario.title + ", " + scenario.shape;
}

class Runner {
 public:
  Runner(const BenchOptions& options, std::vector<const Scenario*> scenarios, const ProgressSink& progress,
         const StopFlag& stop)
      : options_(options), scenarios_(std::move(scenarios)), progress_(progress), stop_(stop) {}

  Result<Record> run() {
    start_record();
    auto environment = FioEnvironment::open(options_.fio, owner_, stop_);
    if (!environment) return environment.take_error();
    record_.fio = environment->facts;
    if (!environment->facts.engine_note.empty()) record_.warnings.push_back(environment->facts.engine_note);
    auto targets = inspect_all();
    if (!targets) return targets.take_error();
    if (auto kept = make_folder(); !kept) return kept.take_error();
    choose_small_work(*targets);
    for (BenchTarget& target : *targets) prepare(target, environment->setup);
    if (auto decidable = check_copies(*targets); !decidable) return decidable.take_error();
    record_.idle_cpu =
        listen_to_idle(options_.root, stop_, [&] { tell("listening to the idle host", "host", 0); });
    Bench bench{options_, environment->setup, stop_, local_of(*targets), folder_ ? &*folder_ : nullptr};
    measure(bench, *targets);
    finish(*targets);
    return std::move(record_);
  }

 private:
  void start_record() {
    record_.started = std::chrono::system_clock::now();
    record_.tool_version = kVersion;
    record_.seed = options_.seed.value_or(random_seed());
    record_.run_id = run_id_of(record_.started, record_.seed);
    record_.size = layout_size(options_);
    record_.runtime = options_.runtime;
    record_.rounds = options_.rounds;
    record_.max_rounds = std::max(options_.rounds, options_.max_rounds);
    record_.rate_limit = options_.rate_limit;
    record_.asked = options_.asked;
    record_.host = read_host_facts();
    for (const Scenario* scenario : scenarios_) record_.scenarios.push_back(*scenario);
    cells_ = plan_cells(options_.paths.size(), scenarios_, options_.rounds, record_.seed);
    const std::size_t most =
        plan_cells(options_.paths.size(), scenarios_, record_.max_rounds, record_.seed).size();
    const auto last_moment = record_.started + longest_run(options_, most);
    owner_ = this_process(std::chrono::system_clock::to_time_t(last_moment));
  }

  Result<std::vector<BenchTarget>> inspect_all() {
    std::vector<BenchTarget> targets;
    for (const PathUnderTest& path : options_.paths) {
      tell("looking at " + printable(path.path), path.name, 0);
      auto target = BenchTarget::inspect(path, options_.root, stop_);
      if (!target) return target.take_error();
      targets.push_back(std::move(*target));
    }
    if (auto enough = check_space(targets, room_of(options_, scenarios_)); !enough) {
      return enough.take_error();
    }
    return targets;
  }

  Result<> make_folder() {
    if (options_.runs_folder.empty()) return {};
    auto folder = RunFolder::make(options_.runs_folder, record_.run_id);
    if (!folder) return folder.take_error();
    folder_ = std::move(*folder);
    return {};
  }

  // Every path reads files of the same sizes: those of the dataset, else those of a read-only path.
  void choose_small_work(const std::vector<BenchTarget>& targets) {
    const std::uint64_t count = small_file_count(options_, scenarios_);
    small_ = made_up_work(count, small_file_size(options_.asked));
    if (count == 0) return;
    std::string folder = has_small_files(options_.asked) ? options_.asked.folder : "";
    for (const BenchTarget& target : targets) {
      if (folder.empty() && target.is_usable() && !target.is_writable()) folder = target.record.folder;
    }
    if (folder.empty() || stop_) return;
    tell("looking at files", folder, 0);
    auto sample = sample_work(folder, options_, record_.seed, stop_);
    if (sample) {
      small_ = std::move(*sample);
      start_at(small_, options_.part);
    } else {
      record_.warnings.push_back(sample.error().message() + ": small files of " +
                                 format_bytes(small_file_size(options_.asked)) + " are read instead");
    }
  }

  // Before a minute is spent on a run without a verdict.
  Result<> check_copies(std::vector<BenchTarget>& targets) const {
    // A dataset that is staged already needs no copy.
    if (!options_.must_decide || options_.asked.is_staged || stop_) return {};
    const BenchTarget* local = local_of(targets);
    for (const BenchTarget& target : targets) {
      if (&target == local || !target.is_usable() || target.record.files.empty()) continue;
      if (has_small_files(options_.asked) || !copy_work(target, options_, 1).source.empty()) continue;
      const Bytes smallest = target.record.files.back().bytes;
      return fail(Errc::Invalid,
                  "--quick can't decide about " + target.record.name + ": its files have " +
                      format_bytes(smallest) + " and more, and it copies at most " +
                      format_bytes(layout_size(options_)),
                  "measure without --quick, with --size " + std::to_string(smallest / kGiB + 1) + "GiB");
    }
    return {};
  }

  void prepare(BenchTarget& target, const FioSetup& setup) {
    if (!target.is_usable() || stop_) return;
    tell("preparing", target.record.name, 0);
    target.open(owner_, {record_.size, small_, options_.asked.folder, options_.rate_limit}, stop_);
    if (!target.is_usable() || !target.is_writable() || stop_) return;
    FioRun fio;
    fio.command = layout_command(setup, target.record.files, options_.rate_limit);
    fio.deadline = layout_deadline(options_);
    const std::string doing = "laying out " + format_bytes(record_.size);
    tell(doing, target.record.name, 0);
    std::vector<double> rates;
    const FioEnd end = run_and_tell(std::move(fio), Direction::Write, stop_, [&](double rate) {
      rates.push_back(rate);
      target.look_at_heat(options_.root);
      tell(doing, target.record.name, 0, rate);
    });
    const std::string slump = options_.rate_limit > 0 ? "" : slump_words(rates, target.hottest);
    if (!slump.empty()) target.record.notes.push_back(slump);
    const std::vector<std::string> faults = faults_of(end, Direction::Write, 0);
    if (!faults.empty()) target.record.unusable = "laying out its files: " + join(faults, "; ");
  }

  static BenchTarget* local_of(std::vector<BenchTarget>& targets) {
    Record paths;  // baseline_of() takes a record
    for (const BenchTarget& target : targets) paths.paths.push_back(target.record);
    BenchTarget& target = targets[baseline_of(paths)];
    return is_remote(target.record.storage.kind) ? nullptr : &target;
  }

  void measure(const Bench& bench, std::vector<BenchTarget>& targets) {
    run_cells(bench, targets, 0);
    for (unsigned round = options_.rounds + 1; round <= record_.max_rounds && !stop_ && !is_called_off_;
         ++round) {
      const std::size_t first = cells_.size();
      add_unsteady_cells(round);
      if (cells_.size() == first || !has_time_for(first)) break;
      run_cells(bench, targets, first);
    }
    cells_.resize(std::min<std::size_t>(cells_.size(), record_.cells.size()));
  }

  void run_cells(const Bench& bench, std::vector<BenchTarget>& targets, std::size_t first) {
    for (std::size_t i = first; i < cells_.size() && !stop_; ++i) {
      const PlannedCell& planned = cells_[i];
      BenchTarget& target = targets[planned.path];
      Cell cell;
      cell.path = target.record.name;
      cell.scenario = planned.scenario->id;
      cell.round = planned.round;
      cell.order = static_cast<unsigned>(i + 1);
      if (options_.next_cell && !options_.next_cell(cell.order)) {
        is_called_off_ = true;
        return;
      }
      cell.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      if (!target.is_usable()) {
        cell.reasons = {target.record.unusable};
      } else if (planned.scenario->writes && !target.is_writable()) {
        cell.reasons = {"nothing may be written there: " + target.record.read_only_reason};
      } else {
        const std::string doing = title_of(*planned.scenario);
        tell(doing, cell.path, cell.order);
        measure_cell(bench, *planned.scenario, target, cell,
                     [&](double rate) { tell(doing, cell.path, cell.order, rate); });
        if (bench.local != nullptr) bench.local->look_at_heat(options_.root);
      }
      record_.cells.push_back(std::move(cell));
      const bool ends_round = i + 1 == cells_.size() || cells_[i + 1].round != planned.round;
      if (ends_round) keep_so_far(targets);
    }
  }

  // Adds another round of the scenarios in which the rounds of a path still differ too much.
  void add_unsteady_cells(unsigned round) {
    for (const PlannedCell& cell : plan_cells(options_.paths.size(), scenarios_, round, record_.seed)) {
      if (cell.round == round && is_unsteady(*cell.scenario)) cells_.push_back(cell);
    }
  }

  bool is_unsteady(const Scenario& scenario) const {
    return std::any_of(options_.paths.begin(), options_.paths.end(), [&](const PathUnderTest& path) {
      const Summary summary = summarize(record_, path.name, scenario.id);
      return summary.headline.size() >= 2 && spread(summary.headlines()) > kSteadySpread;
    });
  }

  bool has_time_for(std::size_t first) const {
    Duration needed{0};
    for (std::size_t i = first; i < cells_.size(); ++i) needed += cell_time(options_, *cells_[i].scenario);
    return std::chrono::steady_clock::now() - start_ + needed < options_.patience;
  }

  // A killed run leaves its results so far, recorded as interrupted.
  void keep_so_far(const std::vector<BenchTarget>& targets) {
    if (!folder_) return;
    Record so_far = record_;
    so_far.interrupted = true;
    for (const BenchTarget& target : targets) so_far.paths.push_back(target.record);
    judge(so_far);
    if (folder_->write(so_far) || !record_.warnings.empty()) return;
    record_.warnings.push_back("the record could not be kept in " + printable(folder_->path().string()));
  }

  void tell(const std::string& doing, const std::string& path, unsigned cell, double rate = 0) {
    if (!progress_) return;
    const unsigned round = cell == 0 ? 0 : cells_[cell - 1].round;
    progress_({doing, path, cell, static_cast<unsigned>(cells_.size()), round, options_.rounds, rate,
               time_left(cell)});
  }

  // Before the first cell from the estimate of the whole run, then from the remaining cells.
  Duration time_left(unsigned cell) {
    const auto now = std::chrono::steady_clock::now();
    if (cell == 0) {
      return std::max(Duration(0), std::chrono::duration_cast<Duration>(estimate(options_) - (now - start_)));
    }
    if (cell != current_cell_) cell_start_ = now;
    current_cell_ = cell;
    Duration left = std::chrono::duration_cast<Duration>(cell_time(options_, *cells_[cell - 1].scenario) -
                                                         (now - cell_start_));
    left = std::max(Duration(0), left);
    for (std::size_t i = cell; i < cells_.size(); ++i) left += cell_time(options_, *cells_[i].scenario);
    return left;
  }

  // Once its paths are known.
  void judge(Record& record) const {
    add_memory_warnings(record);
    apply_plausibility(record);
    const auto took = std::chrono::steady_clock::now() - start_;
    record.seconds = std::chrono::duration<double>(took).count();
  }

  void finish(std::vector<BenchTarget>& targets) {
    record_.interrupted = stop_ || is_called_off_;
    for (BenchTarget& target : targets) {
      if (auto closed = target.close(); !closed) record_.warnings.push_back(closed.error().message());
      const std::string heat = heat_words(target.hottest);
      const std::string delegated = delegation_words(record_, target.record.name);
      for (const std::string& words : {heat, delegated}) {
        if (!words.empty()) target.record.notes.push_back(words);
      }
      record_.paths.push_back(target.record);
    }
    judge(record_);
    if (!folder_) return;
    if (auto written = folder_->write(record_); !written)
      record_.warnings.push_back(written.error().message());
  }

  const BenchOptions& options_;
  const std::vector<const Scenario*> scenarios_;
  const ProgressSink& progress_;
  const StopFlag& stop_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point cell_start_ = start_;
  unsigned current_cell_ = 0;
  bool is_called_off_ = false;
  std::vector<PlannedCell> cells_;
  SmallWork small_;
  Owner owner_;
  std::optional<RunFolder> folder_;
  Record record_;
};

}  // namespace

Result<Record> run(const BenchOptions& options, const ProgressSink& progress, const StopFlag& stop) {
  auto scenarios = check_options(options);
  if (!scenarios) return scenarios.take_error();
  return Runner(options, std::move(*scenarios), progress, stop).run();
}

}  // namespace spark::bench
