#include "bench/record/gates.hpp"

#include <algorithm>
#include <cstdio>

namespace spark::bench {
namespace {

constexpr double kShortestSeconds = 0.1;
constexpr double kStarvedIdle = 0.10;
constexpr double kFullCore = 0.99;
constexpr double kLinkTolerance = 1.02;

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text,
                share < 0.0995 ? "%.2g %%"
                : share < 1    ? "%.1f %%"
                               : "%.0f %%",
                100 * share);
  return text;
}

void reject(Cell& cell, const std::string& reason) {
  cell.status = CellStatus::Invalid;
  cell.reasons.push_back(reason);
}

void check_link(Record& record, const PathRecord& path) {
  const double link = path.storage.nic.bytes_per_second;
  if (link <= 0 || !is_remote(path.storage.kind)) return;
  for (Cell& cell : record.cells) {
    if (cell.path != path.name || cell.status != CellStatus::Valid) continue;
    const ScenarioRecord* scenario = find_scenario_record(record, cell.scenario);
    const bool may_be_ram = scenario != nullptr && scenario->cache == Cache::Warm;
    if (may_be_ram || static_cast<double>(cell.bytes) / cell.seconds <= kLinkTolerance * link) continue;
    reject(cell, "implausible: faster than " + path.storage.nic.name + " (" + format_rate(link) +
                     "), so it did not all come over it");
  }
}

// The median latency of a path in the scenario `latency`; no value without that scenario.
std::optional<std::uint64_t> typical_latency(const Record& record, const PathRecord& path) {
  return percentile(summarize(record, path.name, "latency").bins, 50);
}

void check_latency(Record& record, const PathRecord& remote, std::uint64_t local) {
  const auto latency = typical_latency(record, remote);
  if (!latency || *latency >= local) return;
  for (Cell& cell : record.cells) {
    if (cell.path != remote.name || cell.scenario != "latency" || cell.status != CellStatus::Valid) continue;
    reject(cell, "implausible: a network answered sooner than a local drive, so a cache may have");
  }
}

std::string degrees_text(double celsius) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f °C", celsius);
  return text;
}

std::string slump_cause(const std::optional<DriveTemperature>& hottest) {
  if (!hottest || hottest->limit <= 0) return "the drive's fast cache was full, or it was hot";
  const std::string words =
      "the drive was at " + degrees_text(hottest->celsius) + " of " + degrees_text(hottest->limit);
  return hottest->is_hot() ? words + ", so it was too hot"
                           : words + ", so its fast (SLC) cache was full, most likely";
}

}  // namespace

std::optional<double> origin_share(const Cell& cell) {
  if (!cell.origin.bytes || cell.bytes == 0) return std::nullopt;
  return static_cast<double>(*cell.origin.bytes) / static_cast<double>(cell.bytes);
}

std::vector<std::string> cache_faults(const Cell& cell, const ScenarioRecord& scenario, PathKind kind) {
  if (scenario.writes || scenario.cache == Cache::Warm || cell.bytes == 0) return {};
  const auto share = origin_share(cell);
  if (!share) {
    if (scenario.cache != Cache::Cold && !is_remote(kind)) return {};
    return {"not proven to come from the storage: no counter covers this path"};
  }
  if (*share >= kColdShare) return {};
  const std::string proof = share_text(*share) + " of it came from the storage (" + cell.origin.counter + ")";
  if (scenario.cache == Cache::Cold) {
    return {std::string("not cold: ") + (*share < kRamShare ? "RAM served it, only " : "only ") + proof};
  }
  return {"not from the storage: only " + proof};
}

std::vector<std::string> length_faults(double seconds) {
  if (seconds >= kShortestSeconds) return {};
  char text[96];
  std::snprintf(text, sizeof text, "it took only %.0f ms, too short to measure: choose a larger --size",
                seconds * 1000);
  return {text};
}

std::vector<std::string> change_faults(const std::string& before, const std::string& after) {
  if (before == after) return {};
  return {"the mount or its connection changed meanwhile: from \"" + before + "\" to \"" + after + "\""};
}

std::vector<std::string> starvation_cautions(const CpuUse& use, bool one_thread) {
  if (use.idle_share < kStarvedIdle) {
    return {"starved: the host had no CPU time left, the path itself may be faster"};
  }
  if (one_thread && use.busiest_core > kFullCore) {
    return {"starved: one core was busy all the time, the path itself may be faster"};
  }
  return {};
}

std::string slump_words(const std::vector<double>& rates, const std::optional<DriveTemperature>& hottest) {
  constexpr std::size_t kFewest = 3;  // seconds before, and after
  std::size_t worst = 0;
  double least = 2.0 / 3;
  for (std::size_t at = kFewest; at + kFewest <= rates.size(); ++at) {
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(at);
    const double before = median({rates.begin(), middle});
    const double after = median({middle, rates.end()});
    // A single dip does not count: the drive must stay below until the last second.
    const bool stays = *std::max_element(middle, rates.end()) < 0.8 * before;
    if (before <= 0 || !stays || after / before >= least) continue;
    least = after / before;
    worst = at;
  }
  if (worst == 0) return {};
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(worst);
  return "writing fell from " + format_rate(median({rates.begin(), middle})) + " to " +
         format_rate(median({middle, rates.end()})) + " after " + std::to_string(worst) +
         " s: " + slump_cause(hottest) + "; a large dataset is staged no faster than that";
}

std::string delegation_words(const Record& record, const std::string& path) {
  double files = 0, opens = 0;
  for (const Cell& cell : record.cells) {
    if (cell.path != path || cell.round == 0 || !cell.opens) continue;
    files += static_cast<double>(cell.ios);
    opens += static_cast<double>(*cell.opens);
  }
  if (opens >= kColdShare * files) return {};
  return "small files: the NFS client opened " + share_text(1 - opens / files) +
         " of them without asking the server, because it held their delegations; a job that reads more files "
         "than a client holds delegations may be slower";
}

std::string heat_words(const std::optional<DriveTemperature>& hottest) {
  if (!hottest || !hottest->is_hot()) return {};
  return "the drive was at " + degrees_text(hottest->celsius) + ", and slows down from " +
         degrees_text(hottest->limit) + " on: cool it, and measure again";
}

void add_memory_warnings(Record& record) {
  for (const PathRecord& path : record.paths) {
    if (!path.mount || (path.mount->type != "tmpfs" && path.mount->type != "ramfs")) continue;
    record.warnings.push_back(path.name + " is a " + path.mount->type +
                              ": it measures memory, not storage, direct I/O or not");
  }
}

std::string unsteady_words(double spread) {
  char text[96];
  std::snprintf(text, sizeof text, "unsteady: the rounds differ by %.1f %% (standard deviation)",
                100 * spread);
  return text;
}

void apply_plausibility(Record& record) {
  for (const PathRecord& path : record.paths) check_link(record, path);
  // A hard disk beside the local drive answers later than a network does.
  std::optional<std::uint64_t> least;
  for (const PathRecord& path : record.paths) {
    if (path.storage.kind != PathKind::Local) continue;
    const auto latency = typical_latency(record, path);
    if (latency && (!least || *latency < *least)) least = latency;
  }
  if (!least) return;
  for (const PathRecord& path : record.paths) {
    if (is_remote(path.storage.kind)) check_latency(record, path, *least);
  }
}

std::string cache_label(const std::vector<const Cell*>& cells, Cache asked) {
  if (asked == Cache::Direct || cells.empty()) return to_string(asked);
  double delivered = 0, origin = 0;
  for (const Cell* cell : cells) {
    if (!cell->origin.bytes) return "not proven";
    delivered += static_cast<double>(cell->bytes);
    origin += static_cast<double>(*cell->origin.bytes);
  }
  const double share = delivered > 0 ? origin / delivered : 0;
  if (asked == Cache::Cold || share >= kColdShare) return "cold " + share_text(share);
  if (share < kRamShare) return "served by RAM";
  return "partly RAM, " + share_text(share) + " from storage";
}

}  // namespace spark::bench
