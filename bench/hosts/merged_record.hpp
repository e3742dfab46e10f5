// One record of several hosts that measured at once.
#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

// The first host's record, with the mean rate of all hosts in each cell: what the target gives to one of them
// while it serves all. A cell that is no result on one host is none; the reason names the host. At least one
// record.
Record merged_record(const std::vector<Record>& records);

}  // namespace spark::bench
