// Formats figures for users, identically in every report.
#pragma once

#include <optional>
#include <string>

#include "bench/record/record.hpp"

namespace spark::bench {

// Three significant digits, or all digits below 9,995: 92, 9994, 12.5k, 310k, 1.25M.
std::string count_text(double count);

// "92 us", "3.10 ms"; "-" without a value.
std::string latency_text(std::optional<std::uint64_t> nanoseconds);

// "2.75 GB/s", "10.0k IOPS", "812 files/s".
std::string headline_text(double value, const ScenarioRecord& scenario);

// "2.31 to 2.55 GB/s", or "980 MB/s to 1.02 GB/s" if the units differ.
std::string range_text(double low, double high, const ScenarioRecord& scenario);

// The value that headline_text() shows, in the same unit as `value`, so that users can verify printed ratios.
double as_printed(double value, const ScenarioRecord& scenario);

// "0.39x", the ratio of the medians; preceded by "≈" if the rounds show no clear difference, followed by "?"
// if there are too few to tell.
std::string ratio_text(const PairedComparison& comparison, double of_medians);

// "3.7 s, " in front of the rate at which a model was loaded; empty in other scenarios.
std::string loaded_text(const Summary& summary, const ScenarioRecord& scenario);

// "26.0 GB, 4.29 GB cached": the free memory after a model was loaded, and the memory of its files in the
// page cache; "26.0 GB, 4.29 GB less" than before if that is not known; empty if no model was loaded.
std::string free_memory_text(const Summary& summary);

// "40 %" of 0.4.
std::string percent_text(double share);

// "21.0 s", "1 h 05 min"
std::string seconds_text(double seconds);

// "0.21"; "-" without a value.
std::string small_number(const std::optional<double>& number);

// "the hosts measured 'shards' of nfs at once for 40 % of the time only"
std::string apart_words(const std::string& path, const ScenarioOverlap& overlap);

}  // namespace spark::bench
