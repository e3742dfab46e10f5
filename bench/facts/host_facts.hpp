#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

// Facts about this host. A fact that can't be read stays empty or 0.
HostFacts read_host_facts();

}  // namespace spark::bench
