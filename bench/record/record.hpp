// The record of a run: all results and all data needed to interpret them. Reports are made from it alone.
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
  std::string name, kernel, machine;  // as uname reports them: "spark-1", "6.17.0-…", "aarch64"
  unsigned cpus = 0;                  // online
  Bytes memory_bytes = 0;
};
SPARK_MESSAGE(HostFacts, (name, kernel, machine, cpus, memory_bytes));

struct FioFacts {
  std::string version;      // "fio-3.33"
  std::string engine;       // io_uring or libaio
  std::string engine_note;  // why io_uring is not used; empty if it is
};
SPARK_MESSAGE(FioFacts, (version, engine, engine_note));

// Of several hosts: the share of a scenario's time in which they measured it at once.
struct ScenarioOverlap {
  std::string scenario;
  double share = 0;
};
SPARK_MESSAGE(ScenarioOverlap, (scenario, share));

// A path under test, with its facts and its files.
struct PathRecord {
  std::string name, path;
  std::string folder;  // `path` with symbolic links resolved
  std::optional<MountFacts> mount;
  StorageFacts storage;
  Bytes size = 0, free = 0;      // of its file system, before the run
  std::string read_only_reason;  // empty: the run had its own folder there
  std::string unusable;  // why the path could not be measured, at all or from some cell on; empty: no failure
  std::vector<DataFile> files;           // the large files read; also written if they are the run's own
  std::uint64_t small_files = 0;         // files that were read whole
  Bytes small_bytes = 0;                 // their total size
  std::vector<ScenarioOverlap> at_once;  // of a remote path that several hosts measured
  std::vector<std::string> notes;
};

enum class CellStatus {
  Valid,
  Invalid,      // measured, but invalid for `reasons`
  NotMeasured,  // not attempted, for `reasons`
};
const char* to_string(CellStatus status);

// One path in one scenario in one round.
struct Cell {
  std::string path, scenario;  // names in the record
  unsigned round = 1;          // 0: the warm-up, shown but not part of any figure
  unsigned order = 0;          // the n-th cell of the run
  double at_s = 0;             // since the start of the run
  CellStatus status = CellStatus::NotMeasured;
  std::vector<std::string> reasons;
  std::vector<std::string> cautions;  // valid, but to be interpreted with these
  std::string command;                // the exact fio command as typed into a shell; empty: not fio
  std::string raw_file;               // fio's own output, next to the record; empty: not kept
  Bytes bytes = 0;
  std::uint64_t ios = 0;
  std::optional<std::uint64_t> opens;  // small files on NFS: requests to open a file
  double seconds = 0;
  double cpu_seconds = 0;  // of fio itself, without kernel threads
  Bins bins;               // latency of each I/O, submission to completion; or of each file, open to close
  Origin origin;
  std::optional<CpuUse> cpu;
  std::optional<FreeMemory> memory;  // of a loaded model
};

// The question that the run should answer.
struct AskedFor {
  std::string dataset;      // as given by the user; empty if not given
  std::string folder;       // the dataset's folder; empty: only its size is known
  Bytes dataset_bytes = 0;  // 0: unknown
  std::uint64_t dataset_files = 0;
  unsigned epochs = 0;  // 0: not given
  Demand demand;
  unsigned nodes = 0;        // nodes that read from the target at the same time; 0 and 1: only this one
  Bytes cache_room = 0;      // space that the cache could free for the dataset by evicting others; 0: unknown
  bool is_staged = false;    // the cache already contains a copy
  Bytes target_memory = 0;   // of the remote target, which may serve reads from it; 0: unknown
  Bytes checkpoint = 0;      // size of the checkpoints that the job writes; 0: not asked
  unsigned fleet_hosts = 0;  // hosts that stage together, including this one; 0: no fleet is configured
  bool loads_model = false;  // asks how long a model takes to be loaded; the dataset is the model
};

// Mean file size of the dataset, or of the files that the job was seen to read; 0: unknown.
Bytes mean_dataset_file(const AskedFor& asked);

// True if files are smaller than 1 MiB on average: reading them is a different load from a few large files.
bool has_small_files(const AskedFor& asked);

// The scenarios that read like the job, best match first.
std::vector<std::string> fitting_scenarios(const AskedFor& asked);

struct Record {
  std::string run_id, tool_version;
  WallTime started;
  double seconds = 0;      // duration of the whole run
  std::uint64_t seed = 0;  // for the order of the paths in each round
  bool interrupted = false;
  std::vector<std::string> hosts;  // hosts that measured at the same time; the cells are their mean. Empty:
                                   // only `host`
  Bytes size = 0;                  // laid out in each writable path
  std::chrono::seconds runtime{};
  unsigned rounds = 0, max_rounds = 0;
  Bytes rate_limit = 0;  // limit in bytes per second for every measurement; 0: no limit
  AskedFor asked;
  HostFacts host;
  IdleCpu idle_cpu;
  FioFacts fio;
  std::vector<PathRecord> paths;
  std::vector<ScenarioRecord> scenarios;
  std::vector<Cell> cells;
  std::vector<std::string> warnings;
};

// Invalid if it is no record, or one of another schema. Its values may be implausible but are safe to show.
Result<Record> record_from_json(const json::object& object);
// One of its numbers; 0 for anything that is no finite number above 0.
double read_amount(const json::object& object, std::string_view key);

// One path in one scenario over all rounds except the warm-up.
struct Summary {
  ByRound headline;                             // by round: bytes per second, or I/Os per second
  ByRound rate_of_round;                        // bytes per second of each valid round
  std::vector<double> rates;                    // bytes per second of each valid round, in round order
  std::vector<double> io_rates;                 // I/Os per second, likewise
  std::vector<double> warm_up;                  // the headline of the warm-up
  Bins bins;                                    // of all valid rounds
  CellStatus status = CellStatus::NotMeasured;  // Valid if at least one round is
  std::vector<std::string> reasons;             // of the invalid rounds, without duplicates
  std::vector<std::string> cautions;            // without duplicates
  std::string cache;                            // the source of the data: "cold 99.8 %", "direct", "served by
                                                // RAM"
  std::optional<double> cpu_per_gb;             // of the whole host; no value: not above its idle use
  std::optional<double> kernel_cpu_per_gb;      // part of it, in kernel threads
  std::vector<double> seconds;                  // of each valid round, in round order
  std::optional<FreeMemory> memory;             // median of the valid rounds; none unless a model is loaded

  std::vector<double> headlines() const { return values_of(headline); }
};
Summary summarize(const Record& record, const std::string& path, const std::string& scenario);

// Compares the headlines of `b` with those of `a`, in the rounds in which both are valid.
PairedComparison compare_summaries(const Summary& a, const Summary& b);

// Mean size of the small files that were read whole; 0 if there are none.
Bytes mean_small_file(const PathRecord& path);

// Mean size of the files that `stagecopy` copied from the path; 0 if no round of it is valid.
Bytes mean_copied_file(const Record& record, const std::string& path);

// True if both paths had comparable work: for `smallfiles`, files of similar sizes (within 10 %).
bool is_same_work(const PathRecord& a, const PathRecord& b, const std::string& scenario);

const PathRecord* find_path(const Record& record, const std::string& name);
const ScenarioRecord* find_scenario_record(const Record& record, const std::string& id);

// True if at least one cell is valid. If not, the run has failed (exit status 1); the cells contain the
// reasons.
bool has_results(const Record& record);

// The path to compare the others with: the one named "local", else the first local path, else the first path.
std::size_t baseline_of(const Record& record);

}  // namespace spark::bench
