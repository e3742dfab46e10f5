// The cells of a run, their order, and their time limits.
#pragma once

#include <vector>

#include "bench/measure/bench.hpp"
#include "bench/record/scenario.hpp"

namespace spark::bench {

struct PlannedCell {
  std::size_t path;  // index in the options
  const Scenario* scenario;
  unsigned round;  // from 1
};

// Checks the options and returns the selected scenarios in the order of all_scenarios().
Result<std::vector<const Scenario*>> check_options(const BenchOptions& options);

std::uint64_t random_seed();

// Interleaved: in each round, from the warm-up (0) to `rounds`, each scenario visits every path once, in an
// order drawn from `seed`. Drift of a machine or network then affects all paths equally.
std::vector<PlannedCell> plan_cells(std::size_t paths, const std::vector<const Scenario*>& scenarios,
                                    unsigned rounds, std::uint64_t seed);

// How long the idle host is listened to.
inline constexpr Duration kIdleTime{2000};

// The files laid out in each writable path: large files of equal size, together a multiple of 16 MiB, and
// small files if a scenario reads whole files.
inline constexpr unsigned kLargeFiles = 4;
inline constexpr Bytes kSmallFileSize = 128 * kKiB;  // unless the dataset's mean is known
inline constexpr std::size_t kMostSmallFiles = 2048;
inline constexpr Bytes kLargestSmallFile = kMiB;
Bytes layout_size(const BenchOptions& options);
Bytes small_bytes_at_most(const BenchOptions& options);  // total size of the small files
Bytes small_file_size(const AskedFor& asked);            // of each one that is not sampled
std::uint64_t small_file_count(const BenchOptions& options, const std::vector<const Scenario*>& scenarios);

// Space that the run needs in each writable path, and on the local path for the copy.
Bytes room_of(const BenchOptions& options, const std::vector<const Scenario*>& scenarios);

// Limit in bytes per second for all streams of a cell together: the lower of the job's rate, where the
// scenario has it, and --rate-limit; 0: no limit.
double cell_rate(const BenchOptions& options, const Scenario& scenario);

// A path that exceeds one of these deadlines counts as unresponsive. A copy of more than a quarter of the
// size has the time of a layout.
Duration cell_deadline(const BenchOptions& options);
Duration layout_deadline(const BenchOptions& options);

// Upper limit for the duration of a run, even if paths hang.
Duration longest_run(const BenchOptions& options, std::size_t cells);

// Expected duration of a cell: its runtime plus fio's start and end, or its copy or its loading.
Duration cell_time(const BenchOptions& options, const Scenario& scenario);

}  // namespace spark::bench
