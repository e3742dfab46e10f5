// Validity checks of a result: each one returns its reasons as sentences. Pure; docs/bench-method.md lists
// them.
#pragma once

#include <string>
#include <vector>

#include "bench/record/record.hpp"

namespace spark::bench {

// If a smaller share came from the storage, the read was not cold.
inline constexpr double kColdShare = 0.95;
// If a smaller share came from the storage, RAM served the read.
inline constexpr double kRamShare = 0.05;

// Bytes from the storage divided by bytes delivered; no value if no counter exists.
std::optional<double> origin_share(const Cell& cell);

// Contradictions between the scenario's cache mode and the counters.
std::vector<std::string> cache_faults(const Cell& cell, const ScenarioRecord& scenario, PathKind kind);

// For a cell that ends with its data: the reason if the data was too small.
std::vector<std::string> length_faults(double seconds);

// The mount options, controllers and their states must be the same before and after the cell.
std::vector<std::string> change_faults(const std::string& before, const std::string& after);

// The host had no spare CPU time, so the path may be faster than measured.
std::vector<std::string> starvation_cautions(const CpuUse& use, bool one_thread);

// For a long write to the local drive, with the rate of each second in bytes per second: reports a drop to
// less than two thirds for the rest of the time. Its fast part (SLC cache) is then full, or it is hot;
// `hottest` tells which. Empty if the rate did not drop.
std::string slump_words(const std::vector<double>& rates, const std::optional<DriveTemperature>& hottest);

// For the small files of a path on NFS: the share of them that the client opened without asking the server.
// Empty if the server was asked for nearly all, or nothing counted the requests.
std::string delegation_words(const Record& record, const std::string& path);

// Empty if the drive stayed below its limit or the temperature is unknown.
std::string heat_words(const std::optional<DriveTemperature>& hottest);

// Warns about paths in memory.
void add_memory_warnings(Record& record);

// "the rounds differ by 7.2 % (standard deviation), …"
std::string unsteady_words(double spread);

// After the run, across paths: invalidates cells that are faster than the link allows, or that answer faster
// than the local drive.
void apply_plausibility(Record& record);

// The source of the data, for a table: "direct", "cold 99.8 %", "served by RAM", "partly RAM, 40 % from
// storage".
std::string cache_label(const std::vector<const Cell*>& cells, Cache asked);

}  // namespace spark::bench
