// Measures one cell with its scenario's method, and reads the host's counters before and after.
#pragma once

#include "base/threads.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/bench_target.hpp"
#include "bench/measure/live_rate.hpp"
#include "bench/report/run_folder.hpp"

namespace spark::bench {

// State shared by all cells of a run. Owned by the run, which outlives every meter.
struct Bench {
  const BenchOptions& options;
  const FioSetup& fio;
  const StopFlag& stop;
  BenchTarget* local = nullptr;       // destination of copies; null: no copies
  const RunFolder* folder = nullptr;  // null: nothing is kept
};

// Fills in the cell except its names and numbers. Marks an unresponsive target as unusable.
void measure_cell(const Bench& bench, const Scenario& scenario, BenchTarget& target, Cell& cell,
                  const RateSink& tell);

}  // namespace spark::bench
