// A record of loading a model, with invented rates.
#pragma once

#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {

// Three rounds and a warm-up. The local drive loads 4 GB in 2 s directly and in 4 s else, NFS in 8 s and 16
// s.
inline Record loading_record() {
  Record record = sample_record();
  record.cells.clear();
  record.scenarios.clear();
  record.warnings.clear();
  record.paths[0].name = "nfs";
  record.paths[0].storage.kind = PathKind::Nas;
  record.paths[0].storage.nic.bytes_per_second = 25e9;
  record.asked.loads_model = true;
  record.asked.dataset_bytes = 16'000'000'000;
  constexpr Bytes kLoaded = 4'000'000'000, kFree = 30'000'000'000;
  for (const char* id : {"load-mmap", "load-buffered", "load-direct"}) {
    const Scenario& scenario = **find_scenario(id);
    record.scenarios.push_back(
        {id, std::string(scenario.title), std::string(scenario.shape), false, false, scenario.cache});
    const bool is_direct = scenario.way == LoadWay::Direct;
    for (unsigned round = 0; round <= 3; ++round) {
      for (const PathRecord& path : record.paths) {
        Cell cell = valid_cell(path.name, id, round, kLoaded, 1, {});
        cell.seconds = (path.name == "nfs" ? 8 : 2) * (is_direct ? 1 : 2);
        const Bytes cached = is_direct ? 0 : kLoaded;
        cell.memory = {kFree, kFree - cached - 10'000'000, cached};
        record.cells.push_back(cell);
      }
    }
  }
  return record;
}

}  // namespace spark::bench
