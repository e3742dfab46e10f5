// The worked example of decision_test.cpp as a record.
#pragma once

#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {

// Five equal rounds, and a warm-up.
inline Record worked_example() {
  Record record = sample_record();
  record.cells.clear();
  record.paths.push_back(record.paths[0]);
  record.paths[2].name = "nfs";
  record.paths[2].storage.kind = PathKind::Nas;
  record.scenarios.push_back({"stagecopy", "staging copy", "to durable", false, false, Cache::Direct});
  record.asked.dataset = "imagenet";
  record.asked.dataset_bytes = 1'200'000'000'000;
  record.asked.dataset_files = 1000;
  record.asked.epochs = 30;
  record.asked.demand.bytes_per_second = 20e9;  // faster than any of them
  for (unsigned round = 0; round <= 5; ++round) {
    const Bytes gigabyte = 1'000'000'000;  // a cell lasts 2 s
    record.cells.push_back(valid_cell("local", "shards", round, 13 * gigabyte, 13'000, {}));
    for (const auto& [name, bytes] :
         {std::pair{"nvme-tcp", 5'600'000'000ULL}, std::pair{"nfs", 2'200'000'000ULL}}) {
      record.cells.push_back(valid_cell(name, "shards", round, bytes, 5'600, {}));
      record.cells.push_back(valid_cell(name, "stagecopy", round, bytes, 1, {}));
    }
  }
  return record;
}

}  // namespace spark::bench
