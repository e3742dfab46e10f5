// Time limits and size limits for requests to other hosts.
#pragma once

#include <chrono>

#include "base/units.hpp"
#include "fleet/transport/channel.hpp"

namespace spark::fleet {

inline constexpr std::chrono::milliseconds kLookEvery{250};  // interval of polling a peer
// Maximum wait for the first answers of all peers. A peer that does not answer fails earlier.
inline constexpr std::chrono::milliseconds kFirstLook{5000};
inline constexpr std::chrono::milliseconds kLongestSilence{6000};  // while all answers take long
inline constexpr std::chrono::milliseconds kPatience{5000};  // maximum time without a byte of the answer
// A peer that needs longer for a unit of 8 MiB is no help.
inline constexpr TimeLimits kForUnit{kPatience, std::chrono::milliseconds(30'000)};
// For the entries of a walk: gigabytes at most.
inline constexpr TimeLimits kForWalk{kPatience, std::chrono::milliseconds(180'000)};
inline constexpr Bytes kMostState = 64 * kMiB;  // maximum size of a peer's answer about a set

// For the short answers about a set.
inline TimeLimits for_state(std::chrono::milliseconds patience) {
  return {patience, 2 * patience};
}

}  // namespace spark::fleet
