#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

// Of the machine that measures. What can't be read stays empty or 0.
HostFacts read_host_facts();

}  // namespace spark::bench
