// The record of a run: everything measured and everything needed to read it. Reports are made from it alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "bench/fio_job.hpp"
#include "bench/histogram.hpp"
#include "bench/mount_facts.hpp"
#include "bench/statistics.hpp"

namespace spark::bench {

inline constexpr const char* kRecordSchema = "spark-stage-bench/1";

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
  Bytes size = 0, free = 0;      // of its file system, before the run
  std::string read_only_reason;  // empty: the run had a folder of its own there
  std::string unusable;  // why nothing could be measured here, or from some cell on; empty: all went well
  std::vector<DataFile> files;  // that were read, and written if they are the run's own
  std::vector<std::string> notes;
};

struct ScenarioRecord {
  std::string id, title, shape;
  bool writes = false, counts_ios = false;
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
  unsigned round = 1;
  unsigned order = 0;  // the n-th cell of the run
  CellStatus status = CellStatus::NotMeasured;
  std::vector<std::string> reasons;
  std::vector<std::string> command;  // fio's, exactly
  Bytes bytes = 0;
  std::uint64_t ios = 0;
  double seconds = 0;      // measured by fio
  double cpu_seconds = 0;  // fio's own; a kernel's threads are not in it
  Bins bins;               // latency of each I/O, submission to completion
};

struct Record {
  std::string run_id, tool_version;
  WallTime started;
  double seconds = 0;      // the whole run
  std::uint64_t seed = 0;  // of the order of the paths in each round
  bool interrupted = false;
  Bytes size = 0;  // laid out in each writable path
  std::chrono::seconds runtime{};
  unsigned rounds = 0;
  HostFacts host;
  FioFacts fio;
  std::vector<PathRecord> paths;
  std::vector<ScenarioRecord> scenarios;
  std::vector<Cell> cells;
  std::vector<std::string> warnings;
};

// Schema "spark-stage-bench/1": rates in bytes per second, sizes in bytes, latencies in ns, durations in s.
// The member "summary" is derived from "cells".
json::object to_json(const Record& record);

// One path in one scenario over all rounds.
struct Summary {
  std::vector<double> rates;                    // bytes per second of each valid round, in round order
  std::vector<double> io_rates;                 // I/Os per second, likewise
  Bins bins;                                    // of all valid rounds
  CellStatus status = CellStatus::NotMeasured;  // Valid if any round is
  std::vector<std::string> reasons;             // of the rounds that are not, each once
};
Summary summarize(const Record& record, const std::string& path, const std::string& scenario);

// At least one cell is valid; if not, the run has failed (exit status 1) and the reasons stand in the cells.
bool has_results(const Record& record);

// The path that the others are compared with: the one named "local", or else the first.
std::size_t baseline_of(const Record& record);

}  // namespace spark::bench
