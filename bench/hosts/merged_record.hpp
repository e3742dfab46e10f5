// Merges the records of several hosts that measured at the same time.
#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

// The first host's record with the mean rate of all hosts in each cell: the rate of one host while the target
// serves all of them. A cell that is invalid on one host is invalid in the result; the reason names the host.
// A warning names each scenario that they measured at once for less than kEnoughOverlap of the time.
// Needs at least one record.
Record merged_record(const std::vector<Record>& records);

}  // namespace spark::bench
