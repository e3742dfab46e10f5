// `spark-stage bench`: measures paths side by side with fio and says honestly what it measured.
// Options → plan → fio → record → table or JSON. Works only in folders that it makes and removes, or reads
// existing files where it may not write.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "bench/fio/process.hpp"
#include "bench/record/record.hpp"

namespace spark::bench {

struct PathUnderTest {
  std::string name;  // 1 to 40 of letters, digits, '.', '_', '-'; unique in a run
  std::string path;  // a folder
};

// "nvme-tcp=/mnt/a", or "/mnt/a" alone, named after its last folder. Invalid, with what is wrong.
Result<PathUnderTest> parse_path_argument(const std::string& argument);

struct BenchOptions {
  std::vector<PathUnderTest> paths;
  std::vector<std::string> scenarios;  // names (scenario.hpp); empty: all
  Bytes size = 4 * kGiB;               // of the files laid out in each writable path; at least 16 MiB
  std::chrono::seconds runtime{2};     // of each cell, 1 s to 1 h
  unsigned rounds = 5;                 // 1 to 100, after one to warm up
  unsigned max_rounds = 9;             // while the spread is 5 % or more, and the run shorter than `patience`
  Duration patience{600'000};
  std::optional<std::uint64_t> seed;  // of the order; none: a random one, recorded
  Bytes rate_limit = 0;               // bytes per second of every measurement; 0: none
  AskedFor asked;
  std::string fio = "fio";            // program
  std::filesystem::path runs_folder;  // where the run's own folder is made (run_folder.hpp); empty: nowhere
  SystemRoot root;                    // whose /proc and /sys are read
  // Called before each cell with its number, from 1; the run ends as an interrupted one where it gives false.
  std::function<bool(unsigned cell)> next_cell = {};
};

// --quick: 2 s a cell, 1 GiB, three rounds of what a verdict needs; never more than what the options say.
BenchOptions quick(BenchOptions options);

// What would be done, with the job files, for --dry-run. Touches no path.
Result<std::string> dry_run(const BenchOptions& options);

// How long a run takes if every path writes 500 MB/s while the files are laid out.
Duration estimate(const BenchOptions& options);

struct Progress {
  std::string doing;             // "laying out 4.29 GB", "random read, 4 KiB, QD 1"
  std::string path;              // name
  unsigned cell = 0, cells = 0;  // cell 0: still preparing
  unsigned round = 0, rounds = 0;
  double bytes_per_second = 0;  // in the last second; 0: not known yet
  Duration left{};              // estimated, to the end of the run
};
// About once a second, and at the start of each step. Called on run's own thread.
using ProgressSink = std::function<void(const Progress&)>;

// One line of at most 79 columns, without a newline.
std::string progress_line(const Progress& progress);

// Measures. Before the first byte is written it refuses: bad options and paths that are no folders (Invalid),
// missing ones (NotFound), raw devices (Refused), too little space (NoSpace), fio missing (NotFound).
// After that a path that fails only marks its own cells (has_results tells whether any is left). When `stop`
// is set the run ends within seconds (plus 30 s for each path that hangs), its folders are removed, and the
// record has `interrupted` (exit status 130); before the first path is ready it is an Error, Cancelled.
// Blocks for minutes, and forks: call it from a program with one thread. Its children die with the calling
// thread.
Result<Record> run(const BenchOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::bench
