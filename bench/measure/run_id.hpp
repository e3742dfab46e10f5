// A unique identifier for each run.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace spark::bench {

std::uint64_t random_seed();

// "20261120T162126Z-1f3a": sorts by time; hosts that start together get different ones.
std::string run_id_of(WallTime started, std::uint64_t seed);

}  // namespace spark::bench
