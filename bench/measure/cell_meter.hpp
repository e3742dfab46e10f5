// Measures one cell by its scenario's method, with the host's counters read around it.
#pragma once

#include "base/threads.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/bench_target.hpp"
#include "bench/measure/live_rate.hpp"
#include "bench/report/run_folder.hpp"

namespace spark::bench {

// What all cells of a run share. Owned by the run, which outlives every meter.
struct Bench {
  const BenchOptions& options;
  const FioSetup& fio;
  const StopFlag& stop;
  BenchTarget* local = nullptr;       // where copies go; null: nowhere
  const RunFolder* folder = nullptr;  // null: nothing is kept
};

// Fills in everything but the cell's names and numbers. A target that stops answering is marked unusable.
void measure_cell(const Bench& bench, const Scenario& scenario, BenchTarget& target, Cell& cell,
                  const RateSink& tell);

// Runs fio, telling the rate of each second.
FioEnd run_and_tell(FioRun fio, Direction direction, const StopFlag& stop, const RateSink& tell);

}  // namespace spark::bench
