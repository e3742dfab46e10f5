// The model that the scenarios of loading read in a cell.
#pragma once

#include "bench/files/model_loader.hpp"
#include "bench/measure/bench_target.hpp"

namespace spark::bench {

// The path's weights, up to the size of our own files; without files if there is nothing to load.
ModelLoading load_work(const BenchTarget& target, const BenchOptions& options, const Scenario& scenario);

// How to interpret the result: not all of it was there, or it did not fit into the free memory.
std::vector<std::string> load_cautions(const Cell& cell, const BenchOptions& options, LoadWay way);

}  // namespace spark::bench
