// Time limits and size limits for requests to other hosts.
#pragma once

#include <chrono>

#include "base/units.hpp"

namespace spark::fleet {

inline constexpr std::chrono::milliseconds kLookEvery{250};  // interval of polling a peer
// Maximum wait for the first answers of all peers. A peer that does not answer fails earlier.
inline constexpr std::chrono::milliseconds kFirstLook{5000};
inline constexpr std::chrono::milliseconds kLongestSilence{6000};  // while all answers take long
inline constexpr std::chrono::milliseconds kPatience{5000};  // maximum time without a byte of the answer
inline constexpr Bytes kMostState = 64 * kMiB;               // maximum size of a peer's answer about a set

}  // namespace spark::fleet
