// How long a host waits for others, and how much it takes from them.
#pragma once

#include <chrono>

#include "base/units.hpp"

namespace spark::fleet {

inline constexpr std::chrono::milliseconds kLookEvery{250};   // at a peer
inline constexpr std::chrono::milliseconds kFirstLook{1200};  // for the first answers of all peers
inline constexpr std::chrono::milliseconds kPatience{5000};   // without a byte of what was asked for
inline constexpr Bytes kMostState = 64 * kMiB;                // of a peer's answer about a set

}  // namespace spark::fleet
