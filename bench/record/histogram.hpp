// Latency histograms. Threads and rounds are merged before any percentile is taken; percentiles are never
// averaged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace spark::bench {

// Latency in nanoseconds (fio's bin) → number of I/Os in it.
using Bins = std::map<std::uint64_t, std::uint64_t>;

void merge_into(Bins& into, const Bins& from);
std::uint64_t sample_count(const Bins& bins);

// The smallest bin that at least `percent` % of the samples do not exceed, in ns; percent in (0, 100]. No
// value if there are too few samples: it needs at least 10 beyond the percentile (1,000 for p99), and at
// least 20 in all.
std::optional<std::uint64_t> percentile(const Bins& bins, double percent);

}  // namespace spark::bench
