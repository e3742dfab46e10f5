// Chooses the datasets to evict for another one. It evicts nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::staging {

// A dataset that may be evicted: unused, and without a lease.
struct Candidate {
  std::string dataset;
  Bytes bytes = 0;             // as counted by the cache
  std::optional<Bytes> freed;  // that deleting it returns to the file system; none means the same as `bytes`
  std::uint64_t inodes = 0;
  double stage_seconds = 0;      // to stage it again; 0 means unknown
  std::chrono::seconds idle{0};  // since it was last used
  bool is_useless = false;       // damaged: it has to be staged again anyway
  bool is_prefetched = false;    // for a future job: evicted only after all others
};

struct Shortage {
  Bytes bytes = 0;  // over the cache's limit
  std::uint64_t inodes = 0;
  Bytes disk_bytes = 0;  // missing in the file system

  bool is_none() const { return bytes == 0 && inodes == 0 && disk_bytes == 0; }
};

// The value of keeping a byte, in seconds of staging that it saves, reduced by idle time:
//   worth = stage_seconds / bytes · 24 h / (24 h + idle)
// Of two datasets with the same idle time, the one from the faster source is evicted first; of two with the
// same staging speed, the one idle longer. After a day without use a dataset is worth half, after nine days a
// tenth. If the staging time is unknown, 1 GB/s is assumed. A useless dataset is worth 0.
double worth(const Candidate& candidate);

// Picks the least worth first, prefetched datasets last, until the shortage is covered. Then it spares those
// that the other victims make unnecessary. Returns indexes into `candidates`. No value if all of them
// together are not enough: then nothing is evicted.
std::optional<std::vector<std::size_t>> choose_victims(const std::vector<Candidate>& candidates,
                                                       const Shortage& shortage);

}  // namespace spark::staging
