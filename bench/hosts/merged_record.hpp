// Merges the records of several hosts that measured at the same time.
#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

// The first host's record with the mean rate of all hosts in each cell: the rate of one host while the target
// serves all of them. The counters of its bytes, its opens and its CPU use are means of the same kind, so are
// the hosts' idle CPU use; a counter that one host lacks is left out. The dataset is staged if all hosts have
// a copy, the room is the least of any, and the run was held to a rate if one was. A cell that is invalid on
// one host is invalid in the result; the reason names the host. A warning names each scenario that they
// measured at once for less than kEnoughOverlap of the time. Needs at least one record.
Record merged_record(const std::vector<Record>& records);

}  // namespace spark::bench
