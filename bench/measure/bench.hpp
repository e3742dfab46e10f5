// `spark-stage bench`: measures paths side by side with fio and rejects invalid results. Options → plan → fio
// → record → table or JSON. Writes only in folders that it creates and removes; reads existing files on
// read-only paths.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "bench/fio/process.hpp"
#include "bench/record/host_part.hpp"
#include "bench/record/record.hpp"

namespace spark::bench {

struct PathUnderTest {
  std::string name;  // 1 to 40 letters, digits, '.', '_', '-'; unique in a run
  std::string path;  // a folder
};

// "nvme-tcp=/mnt/a", or only "/mnt/a", which is named after its last folder. Invalid, with the reason.
Result<PathUnderTest> parse_path_argument(const std::string& argument);

struct BenchOptions {
  std::vector<PathUnderTest> paths;
  std::vector<std::string> scenarios;  // names (scenario.hpp); empty: those of the question, `asked`
  Bytes size = 4 * kGiB;               // of the files laid out in each writable path; at least 16 MiB
  std::chrono::seconds runtime{2};     // of each cell, 1 s to 1 h
  unsigned rounds = 5;                 // 1 to 100, after one warm-up round
  unsigned max_rounds = 9;             // while the spread is 5 % or more and the run is shorter than
                                       // `patience`
  Duration patience{600'000};
  bool must_decide = false;           // else scenarios that can't be measured are left out
  std::optional<std::uint64_t> seed;  // for the order of the cells; if unset, random, and recorded
  Bytes rate_limit = 0;               // limit in bytes per second for every measurement; 0: no limit
  AskedFor asked;
  std::string fio = "fio";            // program name or path
  std::filesystem::path runs_folder;  // parent of the run's folder (run_folder.hpp); empty: keep no run
  SystemRoot root;                    // source of /proc and /sys
  HostPart part = {};                 // if other hosts measure the same paths at the same time
  // Called before each cell with its number, from 1. If it returns false, the run ends as interrupted.
  std::function<bool(unsigned cell)> next_cell = {};
};

// --quick: 2 s a cell, 1 GiB, three rounds of the scenarios that a verdict needs; never more than `options`.
BenchOptions quick(BenchOptions options);

// For --dry-run: the planned steps with the job files. Touches no path.
Result<std::string> dry_run(const BenchOptions& options);

// Estimated duration of a run with its usual rounds, if every path may be written, and writes 500 MB/s; and
// with all further rounds that differing results may cause.
Duration estimate(const BenchOptions& options);
Duration estimate_at_most(const BenchOptions& options);

struct Progress {
  std::string doing;             // "laying out 4.29 GB", "random read, 4 KiB, QD 1"
  std::string path;              // name
  unsigned cell = 0, cells = 0;  // cell 0: still preparing
  unsigned round = 0, rounds = 0;
  double bytes_per_second = 0;  // during the last second; 0: unknown yet
  Duration left{};              // estimated time to the end of the run
};
// Called about once per second and at the start of each step, on run()'s own thread.
using ProgressSink = std::function<void(const Progress&)>;

// One line of at most 79 columns, without a newline.
std::string progress_line(const Progress& progress);

// Runs the benchmark. Before it writes the first byte it rejects bad options and paths that are no folders
// (Invalid), missing paths (NotFound), raw devices (Refused), too little space (NoSpace) and a missing fio
// (NotFound). After that, a path that fails invalidates only its own cells (has_results() tells whether any
// valid one is left). When `stop` is set, the run ends within seconds (plus 30 s for each path that hangs),
// its folders are removed, and the record has `interrupted` (exit status 130). Before the first path is
// ready, `stop` causes an Error, Cancelled. Blocks for minutes, and forks: call it from a single-threaded
// program. Its children die with the calling thread.
Result<Record> run(const BenchOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::bench
