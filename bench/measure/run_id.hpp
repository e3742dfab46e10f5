// What tells one run from another.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace spark::bench {

std::uint64_t random_seed();

// "20261120T162126Z-1f3a": sorts by time, differs between hosts that start together.
std::string run_id_of(WallTime started, std::uint64_t seed);

}  // namespace spark::bench
