#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/text.hpp"
#include "base/version.hpp"
#include "bench/bench.hpp"
#include "bench/host_facts.hpp"
#include "bench/plan.hpp"
#include "bench/site.hpp"
#include "bench/workshop.hpp"

namespace spark::bench {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  while (::getrandom(&seed, sizeof seed, 0) < 0 && errno == EINTR) {
  }
  return seed;
}

// "20261120T162126Z-1f3a": sorts by time, differs between hosts that start together.
std::string run_id_of(WallTime started, std::uint64_t seed) {
  std::string id = rfc3339(started);
  std::erase_if(id, [](char c) { return c == '-' || c == ':'; });
  char suffix[8];
  std::snprintf(suffix, sizeof suffix, "-%04x", static_cast<unsigned>(seed & 0xFFFF));
  return id + suffix;
}

std::string title_of(const Scenario& scenario) {
  return std::string(scenario.title) + ", " + std::string(scenario.shape);
}

// The rate of the last second, from cumulative status objects.
class RateMeter {
 public:
  explicit RateMeter(Direction direction) : direction_(direction) {}
  double rate_after(const json::object& status) {
    const FioCounters now = counters_of(status, direction_);
    const double seconds = now.seconds - seconds_;
    const double bytes = static_cast<double>(now.bytes) - static_cast<double>(bytes_);
    seconds_ = now.seconds;
    bytes_ = now.bytes;
    return seconds > 0 && bytes > 0 ? bytes / seconds : 0;
  }

 private:
  const Direction direction_;
  double seconds_ = 0;
  Bytes bytes_ = 0;
};

class Runner {
 public:
  Runner(const BenchOptions& options, std::vector<const Scenario*> scenarios, const ProgressSink& progress,
         const StopFlag& stop)
      : options_(options), scenarios_(std::move(scenarios)), progress_(progress), stop_(stop) {}

  Result<Record> run() {
    start_record();
    auto workshop = Workshop::open(options_.fio, owner_, stop_);
    if (!workshop) return tl::unexpected<Error>(std::move(workshop.error()));
    record_.fio = workshop->facts;
    if (!workshop->facts.engine_note.empty()) record_.warnings.push_back(workshop->facts.engine_note);
    auto sites = inspect_all();
    if (!sites) return tl::unexpected<Error>(std::move(sites.error()));
    for (Site& site : *sites) prepare(site, workshop->setup);
    measure(*sites, workshop->setup);
    finish(*sites);
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
    record_.host = read_host_facts();
    for (const Scenario* scenario : scenarios_) {
      record_.scenarios.push_back({std::string(scenario->id), std::string(scenario->title),
                                   std::string(scenario->shape), scenario->writes, scenario->counts_ios});
    }
    cells_ = plan_cells(options_.paths.size(), scenarios_, options_.rounds, record_.seed);
    const auto last_moment = record_.started + longest_run(options_, cells_.size());
    owner_ = this_process(std::chrono::system_clock::to_time_t(last_moment));
  }

  Result<std::vector<Site>> inspect_all() {
    std::vector<Site> sites;
    for (const PathUnderTest& path : options_.paths) {
      tell("looking at " + printable(path.path), path.name, 0);
      auto site = Site::inspect(path, stop_);
      if (!site) return tl::unexpected<Error>(std::move(site.error()));
      sites.push_back(std::move(*site));
    }
    if (auto enough = check_space(sites, record_.size); !enough) {
      return tl::unexpected<Error>(std::move(enough.error()));
    }
    return sites;
  }

  void prepare(Site& site, const FioSetup& setup) {
    if (!site.is_usable() || stop_) return;
    site.open(owner_, record_.size, stop_);
    if (!site.is_usable() || !site.is_writable() || stop_) return;
    FioRun fio;
    fio.command = layout_command(setup, site.record.files.front());
    fio.deadline = layout_deadline(options_);
    const FioEnd end = run_and_tell(std::move(fio), Direction::Write,
                                    "laying out " + format_bytes(record_.size), site.record.name, 0);
    const std::vector<std::string> faults = faults_of(end, Direction::Write, 0);
    if (!faults.empty()) site.record.unusable = "laying out its file: " + join(faults, "; ");
  }

  void measure(std::vector<Site>& sites, const FioSetup& setup) {
    for (std::size_t i = 0; i < cells_.size() && !stop_; ++i) {
      const PlannedCell& planned = cells_[i];
      Site& site = sites[planned.path];
      Cell cell;
      cell.path = site.record.name;
      cell.scenario = planned.scenario->id;
      cell.round = planned.round;
      cell.order = static_cast<unsigned>(i + 1);
      if (!site.is_usable()) {
        cell.reasons = {site.record.unusable};
      } else if (planned.scenario->writes && !site.is_writable()) {
        cell.reasons = {"nothing may be written there: " + site.record.read_only_reason};
      } else {
        measure_cell(cell, *planned.scenario, site, setup);
      }
      record_.cells.push_back(std::move(cell));
    }
  }

  void measure_cell(Cell& cell, const Scenario& scenario, Site& site, const FioSetup& setup) {
    const std::vector<Stream> streams = deal_streams(site.record.files, scenario.streams, scenario.block);
    if (streams.empty()) {
      cell.reasons = {"it holds no file of at least " +
                      std::string(scenario.shape.substr(0, scenario.shape.find(','))) + " to read"};
      return;
    }
    const Direction direction = scenario.writes ? Direction::Write : Direction::Read;
    FioRun fio;
    fio.command = cell_command(setup, scenario, streams, options_.runtime);
    fio.deadline = cell_deadline(options_);
    cell.command = fio.command;
    const FioEnd end = run_and_tell(std::move(fio), direction, title_of(scenario), cell.path, cell.order);
    cell.reasons = faults_of(end, direction, static_cast<double>(options_.runtime.count()));
    cell.status = cell.reasons.empty() ? CellStatus::Valid : CellStatus::Invalid;
    if (end.last) fill(cell, counters_of(*end.last, direction));
    if (end.timed_out) site.record.unusable = "it stopped answering during the run";
  }

  static void fill(Cell& cell, FioCounters counters) {
    cell.bytes = counters.bytes;
    cell.ios = counters.ios;
    cell.seconds = counters.seconds;
    cell.cpu_seconds = counters.cpu_seconds;
    cell.bins = std::move(counters.bins);
  }

  FioEnd run_and_tell(FioRun fio, Direction direction, const std::string& doing, const std::string& path,
                      unsigned cell) {
    tell(doing, path, cell);
    RateMeter meter(direction);
    fio.stop = &stop_;
    fio.on_status = [&](const json::object& status) { tell(doing, path, cell, meter.rate_after(status)); };
    auto end = run_fio(fio);
    if (end) return std::move(*end);
    FioEnd failed;
    failed.exit_status = 1;
    failed.words = end.error().message();
    return failed;
  }

  void tell(const std::string& doing, const std::string& path, unsigned cell, double rate = 0) {
    if (!progress_) return;
    Progress now;
    now.doing = doing;
    now.path = path;
    now.cell = cell;
    now.cells = static_cast<unsigned>(cells_.size());
    now.round = cell == 0 ? 0 : cells_[cell - 1].round;
    now.rounds = options_.rounds;
    now.bytes_per_second = rate;
    now.left = time_left(cell);
    progress_(now);
  }

  // Before the first cell from the estimate of the whole; then from the cells that are left.
  Duration time_left(unsigned cell) {
    const auto now = std::chrono::steady_clock::now();
    if (cell == 0) {
      return std::max(Duration(0), std::chrono::duration_cast<Duration>(estimate(options_) - (now - start_)));
    }
    if (cell != current_cell_) cell_start_ = now;
    current_cell_ = cell;
    const auto of_this = std::chrono::duration_cast<Duration>(cell_time(options_) - (now - cell_start_));
    return std::max(Duration(0), of_this) + (cells_.size() - cell) * cell_time(options_);
  }

  void finish(std::vector<Site>& sites) {
    record_.interrupted = stop_;
    for (Site& site : sites) {
      if (auto closed = site.close(); !closed) record_.warnings.push_back(closed.error().message());
      record_.paths.push_back(site.record);
    }
    add_memory_warnings();
    const auto took = std::chrono::steady_clock::now() - start_;
    record_.seconds = std::chrono::duration<double>(took).count();
  }

  void add_memory_warnings() {
    for (const PathRecord& path : record_.paths) {
      if (!path.mount || (path.mount->type != "tmpfs" && path.mount->type != "ramfs")) continue;
      record_.warnings.push_back(path.name + " is a " + path.mount->type +
                                 ": it measures memory, not storage, direct I/O or not");
    }
  }

  const BenchOptions& options_;
  const std::vector<const Scenario*> scenarios_;
  const ProgressSink& progress_;
  const StopFlag& stop_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point cell_start_ = start_;
  unsigned current_cell_ = 0;
  std::vector<PlannedCell> cells_;
  Owner owner_;
  Record record_;
};

}  // namespace

Result<Record> run(const BenchOptions& options, const ProgressSink& progress, const StopFlag& stop) {
  auto scenarios = check_options(options);
  if (!scenarios) return tl::unexpected<Error>(std::move(scenarios.error()));
  return Runner(options, std::move(*scenarios), progress, stop).run();
}

}  // namespace spark::bench
