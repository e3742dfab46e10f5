// Which datasets make way for another one. Decides only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::staging {

// A dataset that nobody needs kept.
struct Candidate {
  std::string dataset;
  Bytes bytes = 0;             // as they count in the cache
  std::optional<Bytes> freed;  // that deleting it gives back to the file system; none: as many
  std::uint64_t inodes = 0;
  double stage_seconds = 0;      // what staging it again takes; 0: not known
  std::chrono::seconds idle{0};  // since it was last used
  bool is_useless = false;       // damaged: it is staged again anyway
  bool is_prefetched = false;    // for a job to come: it goes after all that nobody asked for
};

struct Shortage {
  Bytes bytes = 0;  // of what the cache may hold
  std::uint64_t inodes = 0;
  Bytes disk_bytes = 0;  // of what is free in the file system

  bool is_none() const { return bytes == 0 && inodes == 0 && disk_bytes == 0; }
};

// What keeping a byte of it is worth, in seconds of staging that it saves, less the longer nobody used it:
//   worth = stage_seconds / bytes · 24 h / (24 h + idle)
// So of two that are used alike the one from the faster source goes first, and of two that were staged
// alike the one that was not used longer; after a day without use a dataset is worth half, after nine a
// tenth. Without a known time it counts as staged at 1 GB/s. What is useless is worth nothing.
double worth(const Candidate& candidate);

// The least worth first, what was prefetched last, until the shortage is covered; then those are spared again
// that the others make unnecessary. Indexes into `candidates`. No value if all of them together would not be
// enough: then nothing is evicted at all.
std::optional<std::vector<std::size_t>> choose_victims(const std::vector<Candidate>& candidates,
                                                       const Shortage& shortage);

}  // namespace spark::staging
