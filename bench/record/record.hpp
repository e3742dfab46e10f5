// The record of a run: everything measured and everything needed to read it. Reports are made from it alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "bench/record/demand.hpp"
#include "bench/record/facts.hpp"
#include "bench/record/histogram.hpp"
#include "bench/record/scenario.hpp"
#include "bench/record/statistics.hpp"

namespace spark::bench {

inline constexpr const char* kRecordSchema = "spark-stage-bench/2";

struct HostFacts {
  std::string name, kernel, machine;  // as uname says: "spark-1", "6.17.0-…", "aarch64"
  unsigned cpus = 0;                  // online
  Bytes memory = 0;
};

struct FioFacts {
  std::string version;      // "fio-3.33"
  std::string engine;       // io_uring or libaio
  std::string engine_note;  // why not io_uring; empty if it is
};

// A path under test: what it is, and what was read or written there.
struct PathRecord {
  std::string name, path;
  std::string folder;  // `path` with links resolved
  std::optional<MountFacts> mount;
  StorageFacts storage;
  Bytes size = 0, free = 0;      // of its file system, before the run
  std::string read_only_reason;  // empty: the run had a folder of its own there
  std::string unusable;  // why nothing could be measured here, or from some cell on; empty: all went well
  std::vector<DataFile> files;    // large ones, that were read, and written if they are the run's own
  std::uint64_t small_files = 0;  // that were read whole
  Bytes small_bytes = 0;          // in them
  std::vector<std::string> notes;
};

struct ScenarioRecord {
  std::string id, title, shape;
  bool writes = false, counts_ios = false;
  Cache cache = Cache::Direct;
};

enum class CellStatus {
  Valid,
  Invalid,      // measured, and no result: `reasons`
  NotMeasured,  // not tried: `reasons`
};
const char* to_string(CellStatus status);

// One path in one scenario in one round.
struct Cell {
  std::string path, scenario;  // names in the record
  unsigned round = 1;          // 0: the warm-up, shown and in no figure
  unsigned order = 0;          // the n-th cell of the run
  double at_s = 0;             // since the start of the run
  CellStatus status = CellStatus::NotMeasured;
  std::vector<std::string> reasons;
  std::vector<std::string> cautions;  // a result, but read it with this in mind
  std::string command;                // fio's, exactly, as typed into a shell; empty: not fio
  std::string raw_file;               // fio's own output, beside the record; empty: none was kept
  Bytes bytes = 0;
  std::uint64_t ios = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // fio's own; a kernel's threads are not in it
  Bins bins;               // latency of each I/O, submission to completion; of each file, open to close
  Origin origin;
  std::optional<CpuUse> cpu;
};

// What the run was asked to answer.
struct AskedFor {
  std::string dataset;      // as it was named; empty: none was
  std::string folder;       // of it; empty: only its size is known
  Bytes dataset_bytes = 0;  // 0: unknown
  std::uint64_t dataset_files = 0;
  unsigned epochs = 0;  // 0: not said
  Demand demand;
  unsigned nodes = 0;        // that read from the target at once; 0 and 1: this one alone
  Bytes cache_room = 0;      // what the cache could give the dataset, by evicting others; 0: unknown
  bool is_staged = false;    // the cache has a copy of it already
  Bytes target_memory = 0;   // of the remote target, which may answer from it; 0: unknown
  unsigned fleet_hosts = 0;  // that stage together, this one included; 0: no fleet is configured
};

// On average: of the dataset, or of the files that the job was seen to read; 0: unknown.
Bytes mean_dataset_file(const AskedFor& asked);

// Files smaller than a MiB on average: reading them is another thing than reading a few large ones.
bool has_small_files(const AskedFor& asked);

// The scenarios that read as the job does, the one that is most like it first.
std::vector<std::string> fitting_scenarios(const AskedFor& asked);

struct Record {
  std::string run_id, tool_version;
  WallTime started;
  double seconds = 0;      // the whole run
  std::uint64_t seed = 0;  // of the order of the paths in each round
  bool interrupted = false;
  std::vector<std::string> hosts;  // that measured at once, whose mean the cells are; empty: `host` alone
  Bytes size = 0;                  // laid out in each writable path
  std::chrono::seconds runtime{};
  unsigned rounds = 0, max_rounds = 0;
  Bytes rate_limit = 0;  // bytes per second of every measurement; 0: none
  AskedFor asked;
  HostFacts host;
  IdleCpu idle_cpu;
  FioFacts fio;
  std::vector<PathRecord> paths;
  std::vector<ScenarioRecord> scenarios;
  std::vector<Cell> cells;
  std::vector<std::string> warnings;
};

// Invalid when it is no record, or one of another schema. What it holds may be nonsense; it is safe to show.
Result<Record> record_from_json(const json::object& object);

// One path in one scenario over all rounds but the warm-up.
struct Summary {
  std::map<unsigned, double> headline;          // by round: bytes per second, or I/Os per second
  std::map<unsigned, double> rate_of_round;     // bytes per second of each valid round
  std::vector<double> rates;                    // bytes per second of each valid round, in round order
  std::vector<double> io_rates;                 // I/Os per second, likewise
  std::vector<double> warm_up;                  // the headline of the warm-up
  Bins bins;                                    // of all valid rounds
  CellStatus status = CellStatus::NotMeasured;  // Valid if any round is
  std::vector<std::string> reasons;             // of the rounds that are not, each once
  std::vector<std::string> cautions;            // each once
  std::string cache;                        // what was read from: "cold 99.8 %", "direct", "served by RAM"
  std::optional<double> cpu_per_gb;         // of the whole host; none: not above what it burns when idle
  std::optional<double> kernel_cpu_per_gb;  // of it, in kernel threads

  std::vector<double> headlines() const;
};
Summary summarize(const Record& record, const std::string& path, const std::string& scenario);

// Both paths' headlines in the rounds in which both are valid; `b` compared with `a`.
PairedComparison compare_summaries(const Summary& a, const Summary& b);

// Of the small files that were read whole; 0: there are none.
Bytes mean_small_file(const PathRecord& path);

// Two paths compare where they were asked for the same: of `smallfiles`, files of like sizes (10 %).
bool is_same_work(const PathRecord& a, const PathRecord& b, const std::string& scenario);

const PathRecord* find_path(const Record& record, const std::string& name);
const ScenarioRecord* find_scenario_record(const Record& record, const std::string& id);

// At least one cell is valid; if not, the run has failed (exit status 1) and the reasons stand in the cells.
bool has_results(const Record& record);

// The path that the others are compared with: the one named "local", else the first local one, else the
// first.
std::size_t baseline_of(const Record& record);

}  // namespace spark::bench
