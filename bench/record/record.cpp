#include "bench/record/record.hpp"

#include <algorithm>

#include "bench/record/gates.hpp"

namespace spark::bench {
namespace {

void add_once(std::vector<std::string>& texts, const std::vector<std::string>& more) {
  for (const std::string& text : more) {
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
}

double headline_of(const Cell& cell, bool counts_ios) {
  return (counts_ios ? static_cast<double>(cell.ios) : static_cast<double>(cell.bytes)) / cell.seconds;
}

void add_result(Summary& summary, const Cell& cell, bool counts_ios) {
  summary.status = CellStatus::Valid;
  summary.headline[cell.round] = headline_of(cell, counts_ios);
  summary.rate_of_round[cell.round] = static_cast<double>(cell.bytes) / cell.seconds;
  summary.rates.push_back(static_cast<double>(cell.bytes) / cell.seconds);
  summary.seconds.push_back(cell.seconds);
  summary.io_rates.push_back(static_cast<double>(cell.ios) / cell.seconds);
  merge_into(summary.bins, cell.bins);
}

void add_memory(Summary& summary, const std::vector<const Cell*>& valid) {
  std::vector<double> before, after, cached;
  for (const Cell* cell : valid) {
    if (!cell->memory) continue;
    before.push_back(static_cast<double>(cell->memory->before));
    after.push_back(static_cast<double>(cell->memory->after));
    if (cell->memory->cached) cached.push_back(static_cast<double>(*cell->memory->cached));
  }
  if (before.empty()) return;
  summary.memory = {static_cast<Bytes>(median(before)), static_cast<Bytes>(median(after)), std::nullopt};
  if (!cached.empty()) summary.memory->cached = static_cast<Bytes>(median(cached));
}

// CPU seconds per gigabyte over all valid rounds, minus the host's idle use.
void add_cpu(Summary& summary, const Record& record, const std::vector<const Cell*>& valid) {
  double busy = 0, kernel = 0, seconds = 0, gigabytes = 0;
  for (const Cell* cell : valid) {
    if (!cell->cpu) continue;
    busy += cell->cpu->busy_s;
    kernel += cell->cpu->kernel_threads_s;
    seconds += cell->cpu->seconds;
    gigabytes += static_cast<double>(cell->bytes) / 1e9;
  }
  const double net = busy - record.idle_cpu.cpu_s_per_s * seconds;
  if (gigabytes <= 0 || net <= 0 || net < 3 * record.idle_cpu.error * seconds) return;
  summary.cpu_per_gb = net / gigabytes;
  // The idle use of the kernel's threads alone is not known: they are a part of the rest at most.
  summary.kernel_cpu_per_gb = std::min(kernel, net) / gigabytes;
}

}  // namespace

const char* to_string(CellStatus status) {
  static constexpr const char* kWords[] = {"valid", "invalid", "not_measured"};
  return kWords[static_cast<std::size_t>(status)];
}

const char* to_string(PathKind kind) {
  static constexpr const char* kWords[] = {"unknown", "local", "remote_block", "nas", "memory"};
  return kWords[static_cast<std::size_t>(kind)];
}

Bytes mean_dataset_file(const AskedFor& asked) {
  if (asked.dataset_files == 0) return asked.demand.mean_file;
  return std::max<Bytes>(1, asked.dataset_bytes / asked.dataset_files);
}

bool has_small_files(const AskedFor& asked) {
  const Bytes mean = mean_dataset_file(asked);
  return mean > 0 && mean < kMiB;
}

std::vector<std::string> fitting_scenarios(const AskedFor& asked) {
  if (has_small_files(asked)) return {"smallfiles"};
  if (asked.demand.order == ReadOrder::Random) return {"samples"};
  return {"stream", "shards"};
}

Summary summarize(const Record& record, const std::string& path, const std::string& scenario) {
  Summary summary;
  const ScenarioRecord* shape = find_scenario_record(record, scenario);
  const bool counts_ios = shape != nullptr && shape->counts_ios;
  std::vector<const Cell*> valid;
  for (const Cell& cell : record.cells) {
    if (cell.path != path || cell.scenario != scenario) continue;
    const bool is_result = cell.status == CellStatus::Valid && cell.seconds > 0;
    if (cell.round == 0) {
      if (is_result) summary.warm_up.push_back(headline_of(cell, counts_ios));
      continue;
    }
    if (is_result) {
      add_result(summary, cell, counts_ios);
      valid.push_back(&cell);
    } else if (cell.status == CellStatus::Invalid && summary.status != CellStatus::Valid) {
      summary.status = CellStatus::Invalid;
    }
    add_once(summary.reasons, cell.reasons);
    add_once(summary.cautions, cell.cautions);
  }
  summary.cache = cache_label(valid, shape == nullptr ? Cache::Direct : shape->cache);
  add_cpu(summary, record, valid);
  add_memory(summary, valid);
  if (summary.headline.size() >= 3 && spread(summary.headlines()) > kSteadySpread) {
    summary.cautions.emplace_back(unsteady_words(spread(summary.headlines())));
  }
  return summary;
}

PairedComparison compare_summaries(const Summary& a, const Summary& b) {
  return compare_rounds(a.headline, b.headline);
}

Bytes mean_small_file(const PathRecord& path) {
  return path.small_files == 0 ? 0 : path.small_bytes / path.small_files;
}

Bytes mean_copied_file(const Record& record, const std::string& path) {
  Bytes bytes = 0;
  std::uint64_t files = 0;
  for (const Cell& cell : record.cells) {
    if (cell.path != path || cell.scenario != "stagecopy" || cell.status != CellStatus::Valid) continue;
    bytes += cell.bytes;
    files += cell.ios;
  }
  return bytes / std::max<std::uint64_t>(1, files);
}

bool is_same_work(const PathRecord& a, const PathRecord& b, const std::string& scenario) {
  if (scenario != "smallfiles" || a.small_files == 0 || b.small_files == 0) return true;
  const auto of_a = static_cast<double>(mean_small_file(a));
  const auto of_b = static_cast<double>(mean_small_file(b));
  return of_a <= 1.1 * of_b && of_b <= 1.1 * of_a;
}

const PathRecord* find_path(const Record& record, const std::string& name) {
  const auto found = std::ranges::find(record.paths, name, &PathRecord::name);
  return found == record.paths.end() ? nullptr : &*found;
}

const ScenarioRecord* find_scenario_record(const Record& record, const std::string& id) {
  const auto found = std::ranges::find(record.scenarios, id, &ScenarioRecord::id);
  return found == record.scenarios.end() ? nullptr : &*found;
}

bool has_results(const Record& record) {
  return std::any_of(record.cells.begin(), record.cells.end(),
                     [](const Cell& cell) { return cell.status == CellStatus::Valid && cell.round > 0; });
}

std::size_t baseline_of(const Record& record) {
  std::size_t first_local = record.paths.size();
  for (std::size_t i = 0; i < record.paths.size(); ++i) {
    if (record.paths[i].name == "local") return i;
    const bool is_local = record.paths[i].storage.kind == PathKind::Local;
    if (is_local && first_local == record.paths.size()) first_local = i;
  }
  return first_local < record.paths.size() ? first_local : 0;
}

}  // namespace spark::bench
