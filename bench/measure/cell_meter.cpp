#include "bench/measure/cell_meter.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bench/facts/counters.hpp"
#include "bench/files/file_reader.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/copy_work.hpp"
#include "bench/measure/counter_snapshot.hpp"
#include "bench/measure/load_work.hpp"
#include "bench/measure/plan.hpp"
#include "bench/record/gates.hpp"

namespace spark::bench {
namespace {

class Meter {
 public:
  Meter(const Bench& bench, const Scenario& scenario, BenchTarget& target, Cell& cell, const RateSink& tell)
      : bench_(bench), scenario_(scenario), target_(target), cell_(cell), tell_(tell) {}

  void run() {
    switch (scenario_.method) {
      case Method::Fio:
        by_fio();
        break;
      case Method::Files:
        by_files();
        break;
      case Method::Copy:
        by_copy();
        break;
      case Method::Load:
        by_loading();
        break;
    }
    if (cell_.status == CellStatus::NotMeasured) return;
    judge();
  }

 private:
  void by_fio() {
    std::vector<Stream> streams = deal_streams(target_.record.files, scenario_.streams, scenario_.block);
    if (!scenario_.writes)
      start_elsewhere(streams, target_.record.files, cell_.round, scenario_.block, bench_.options.part);
    if (streams.empty()) {
      cell_.reasons = {"it holds no file of at least " +
                       scenario_.shape.substr(0, scenario_.shape.find(',')) + " to read"};
      return;
    }
    if (scenario_.cache == Cache::Cold && !evict()) return;
    const Direction direction = scenario_.writes ? Direction::Write : Direction::Read;
    FioRun fio;
    fio.command = cell_command(bench_.fio, scenario_, streams,
                               {bench_.options.runtime, cell_rate(bench_.options, scenario_)});
    fio.deadline = cell_deadline(bench_.options);
    cell_.command = shell_line(fio.command);
    const std::vector<std::string> command = fio.command;
    const CounterSnapshot witness(bench_.options.root, target_);
    const FioEnd end = run_and_tell(std::move(fio), direction, bench_.stop, tell_);
    const bool by_time = scenario_.cache == Cache::Direct;
    cell_.reasons =
        faults_of(end, direction, by_time ? static_cast<double>(bench_.options.runtime.count()) : 0);
    cell_.status = CellStatus::Invalid;
    if (end.last) take(counters_of(*end.last, direction));
    witness.fill(cell_);
    if (end.timed_out) target_.record.unusable = "it stopped answering during the run";
    if (bench_.folder != nullptr) {
      const std::string output = (end.last ? pretty(*end.last) + "\n" : "") + end.words;
      cell_.raw_file = bench_.folder->keep(cell_, command, output);
    }
  }

  void take(Measured measured) {
    cell_.bytes = measured.bytes;
    cell_.ios = measured.ios;
    cell_.opens = measured.opens;
    cell_.seconds = measured.seconds;
    cell_.cpu_seconds = measured.cpu_seconds;
    cell_.bins = std::move(measured.bins);
    cell_.memory = measured.memory;
  }

  bool evict() {
    std::vector<std::string> files;
    for (const DataFile& file : target_.record.files) files.push_back(file.path);
    const auto done = apart(
        "emptying the page cache for " + target_.record.name, nullptr,
        [&] { return evict_from_cache(files); }, cell_deadline(bench_.options));
    if (!done) fault(done.error());
    return done.has_value();
  }

  void by_files() {
    if (target_.small_files.empty()) {
      cell_.reasons = {"it does not have the files that the others read, and nothing may be written there"};
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    if (!read_small_files()) return;
    if (target_.delegations() == Delegations::Avoid && !target_.may_be_cached && is_from_cache()) {
      target_.may_be_cached = true;
      start_again(std::chrono::steady_clock::now() - start);
      if (!read_small_files()) return;
    }
    for (const std::string& reason : length_faults(cell_.seconds)) cell_.reasons.push_back(reason);
  }

  // Files of a dataset on NFS are not opened before their first read, so they are not evicted either.
  bool is_from_cache() const {
    const auto share = origin_share(cell_);
    return scenario_.cache == Cache::Cold && share && *share < kColdShare;
  }

  // The result so far is of no use.
  void start_again(std::chrono::duration<double> after) {
    Cell again;
    again.path = cell_.path;
    again.scenario = cell_.scenario;
    again.round = cell_.round;
    again.order = cell_.order;
    again.at_s = cell_.at_s + after.count();
    cell_ = std::move(again);
  }

  bool read_small_files() {
    const SharedCounter counter;
    FileReading reading;
    reading.files = target_.small_files;
    reading.first = target_.files_read;
    reading.pass = target_.window;
    reading.delegations = target_.delegations();
    reading.may_be_cached = target_.may_be_cached;
    reading.threads = scenario_.streams;
    reading.at_least = bench_.options.runtime;
    reading.rate = bench_.options.rate_limit;
    reading.seed = cell_.order;
    reading.progress = counter.get();
    reading.opens_sent = [&] { return opens_sent(); };
    if (!measure("reading small files", counter, [&] { return read_files(reading); })) return false;
    target_.files_read += cell_.ios;
    return true;
  }

  std::optional<std::uint64_t> opens_sent() const {
    const std::string& mount_point = target_.record.storage.origin.nfs_mount;
    return mount_point.empty() ? std::nullopt : nfs_opens(bench_.options.root, mount_point);
  }

  void by_copy() {
    if (bench_.local == nullptr || bench_.local->scratch().empty()) {
      cell_.reasons = {"there is no local path to stage to that may be written"};
      return;
    }
    if (bench_.local == &target_) {
      cell_.reasons = {"this is the path that the others are staged to"};
      return;
    }
    const CopyWork work = copy_work(target_, bench_.options, cell_.round);
    if (work.source.empty()) {
      cell_.reasons = {
          has_small_files(bench_.options.asked)
              ? "none of its folders of small files is small enough to be copied: choose a larger "
                "--size"
              : "none of its files is small enough to be copied: choose a larger --size"};
      return;
    }
    const bool is_small = has_small_files(bench_.options.asked);
    if (is_small && !give_back_delegations()) return;
    const SharedCounter counter;
    const std::uint64_t opens = opens_sent().value_or(0);
    const auto copy = [&] {
      return measure_copy(work, *bench_.local, bench_.options.rate_limit, counter.get());
    };
    if (!measure("staging", counter, copy, copy_deadline(work, bench_.options))) return;
    if (is_small && opens_sent()) cell_.opens = opens_sent().value_or(0) - opens;
    for (const std::string& reason : length_faults(cell_.seconds)) cell_.reasons.push_back(reason);
  }

  // `smallfiles` has read the files that are now copied.
  bool give_back_delegations() {
    if (target_.delegations() != Delegations::GiveBack) return true;
    const auto done = apart(
        "giving back delegations", nullptr,
        [&] { return evict_from_cache(target_.small_files, Delegations::GiveBack); },
        cell_deadline(bench_.options));
    if (!done) fault(done.error());
    return done.has_value();
  }

  void by_loading() {
    ModelLoading loading = load_work(target_, bench_.options, scenario_);
    if (loading.files.empty()) {
      cell_.reasons = {"it holds no file to load"};
      return;
    }
    const SharedCounter counter;
    loading.progress = counter.get();
    if (!measure("loading weights", counter, [&] { return load_model(loading); })) return;
    if (cell_.memory->before == 0) cell_.memory.reset();  // the host does not tell
    for (const std::string& reason : length_faults(cell_.seconds)) cell_.reasons.push_back(reason);
  }

  // In a child. False: it failed, and the cell has the reason.
  template <class Work>
  bool measure(const std::string& doing, const SharedCounter& counter, const Work& work) {
    return measure(doing, counter, work, cell_deadline(bench_.options));
  }

  template <class Work>
  bool measure(const std::string& doing, const SharedCounter& counter, const Work& work, Duration deadline) {
    const CounterSnapshot witness(bench_.options.root, target_);
    auto measured = apart(doing, &counter, work, deadline);
    if (!measured) {
      fault(measured.error());
      return false;
    }
    cell_.status = CellStatus::Invalid;
    take(std::move(*measured));
    witness.fill(cell_);
    return true;
  }

  template <class Work>
  std::invoke_result_t<Work> apart(const std::string& doing, const SharedCounter* counter, const Work& work,
                                   Duration deadline) {
    auto options = on_path(doing, deadline, &bench_.stop);
    if (counter != nullptr) options.on_wait = Teller(tell_, *counter);
    return run_apart(options, work);
  }

  void fault(const Error& error) {
    cell_.status = CellStatus::Invalid;
    cell_.reasons.push_back(error.kind == Errc::Cancelled ? "interrupted" : error.message());
    if (error.kind == Errc::TimedOut) target_.record.unusable = "it stopped answering during the run";
  }

  void judge() {
    if (cell_.bytes > 0 && cell_.seconds > 0 && cell_.reasons.empty()) {
      cell_.reasons = cache_faults(cell_, scenario_, target_.record.storage.kind);
      if (scenario_.method == Method::Fio && scenario_.cache == Cache::Cold) {
        for (const std::string& reason : length_faults(cell_.seconds)) cell_.reasons.push_back(reason);
      }
    } else if (cell_.reasons.empty()) {
      cell_.reasons = {"no data was moved"};
    }
    if (cell_.cpu)
      cell_.cautions = starvation_cautions(*cell_.cpu, scenario_.streams == 1 && scenario_.depth == 1);
    if (scenario_.method == Method::Load) {
      for (const std::string& caution : load_cautions(cell_, bench_.options, scenario_.way))
        cell_.cautions.push_back(caution);
    }
    cell_.status = cell_.reasons.empty() ? CellStatus::Valid : CellStatus::Invalid;
  }

  const Bench& bench_;
  const Scenario& scenario_;
  BenchTarget& target_;
  Cell& cell_;
  const RateSink& tell_;
};

}  // namespace

void measure_cell(const Bench& bench, const Scenario& scenario, BenchTarget& target, Cell& cell,
                  const RateSink& tell) {
  Meter(bench, scenario, target, cell, tell).run();
}

}  // namespace spark::bench
