// The model that the scenarios of loading read in a cell, and its loading.
#pragma once

#include "base/json.hpp"
#include "bench/files/model_loader.hpp"
#include "bench/measure/bench_target.hpp"

namespace spark::bench {

// The path's weights, up to the size of our own files; without files if there is nothing to load.
ModelLoading load_work(const BenchTarget& target, const BenchOptions& options, const Scenario& scenario);

// {bytes, ios: files, seconds, free_before, free_after, cached}. Runs in a child.
Result<json::value> load_as_json(const ModelLoading& loading);

// From that answer; no value if the host does not tell.
std::optional<FreeMemory> free_memory_of(const json::object& answer);

// How to interpret the result: not all of it was there, or it did not fit into the free memory.
std::vector<std::string> load_cautions(const Cell& cell, const BenchOptions& options, LoadWay way);

}  // namespace spark::bench
