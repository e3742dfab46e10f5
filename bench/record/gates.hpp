// When a number is no result: each gate says why in words. Pure; docs/bench-method.md has the list.
#pragma once

#include <string>
#include <vector>

#include "bench/record/record.hpp"

namespace spark::bench {

// Less of what was delivered came from the storage: it was not cold.
inline constexpr double kColdShare = 0.95;
// Less than this: RAM served it.
inline constexpr double kRamShare = 0.05;

// Bytes from the storage by bytes delivered; no value when nothing counts them.
std::optional<double> origin_share(const Cell& cell);

// What the scenario promised of its bytes and the counters deny.
std::vector<std::string> cache_faults(const Cell& cell, const ScenarioRecord& scenario, PathKind kind);

// Of a cell that ends with its data: too little of it.
std::vector<std::string> length_faults(double seconds);

// What was the same before and after the cell has to be the same: mount options, controllers, their state.
std::vector<std::string> change_faults(const std::string& before, const std::string& after);

// The host had no CPU time left: the path may be faster than this.
std::vector<std::string> starvation_cautions(const CpuUse& use, bool one_thread);

// Of a long write to the local drive, the rate of each second in bytes per second: falls it to less than
// two thirds for the rest of the time, its fast part (SLC cache) is full, or it is hot; `hottest` tells
// which. Empty: it did not.
std::string slump_words(const std::vector<double>& rates, const std::optional<DriveTemperature>& hottest);

// Empty where it did not come to its limit, or nothing is known.
std::string heat_words(const std::optional<DriveTemperature>& hottest);

// Paths that are memory.
void add_memory_warnings(Record& record);

// "the rounds differ by 7.2 % (standard deviation), …"
std::string unsteady_words(double spread);

// After the run, across paths: faster than the link allows, or answering sooner than the local drive. Such
// cells become invalid.
void apply_plausibility(Record& record);

// What was read from, for a table: "direct", "cold 99.8 %", "served by RAM", "partly RAM, 40 % from storage".
std::string cache_label(const std::vector<const Cell*>& cells, Cache asked);

}  // namespace spark::bench
