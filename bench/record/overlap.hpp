// The time in which several hosts measured at once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bench/record/record.hpp"

namespace spark::bench {

// Below this share, the hosts' rates are not those of hosts that compete for the target.
inline constexpr double kEnoughOverlap = 0.8;

// The smallest share of a host's measuring time in which another host measured the same path in the same
// scenario. Only valid cells of `rounds` count. 1 if fewer than two hosts have any.
double overlap_of(const std::vector<Record>& records, const std::string& path, const std::string& scenario,
                  const std::set<unsigned>& rounds);

// The valid rounds of the scenario on the path, without the warm-up.
std::set<unsigned> valid_rounds(const Record& record, const std::string& path, const std::string& scenario);

// For hosts that waited for each other before each cell: moves the start of the other records so that half of
// their cells begin before the same cells of the first one, and half after. The hosts' clocks may differ.
void align_clocks(std::vector<Record>& records);

}  // namespace spark::bench
