// Moves bytes over the link to a peer for a moment, and takes the rate: through the port that serves peers,
// by several connections with TLS, as stagings do. In bursts with pauses: a burst takes what the link has, so
// that its rate tells what the link can do, and the pauses leave the link to the traffic of others.
#pragma once

#include <chrono>
#include <memory>

#include "fleet/link/connection.hpp"
#include "fleet/link/facts.hpp"

namespace spark::fleet {

inline constexpr double kShareOfLink = 0.25;  // of the time

// Of one direction.
struct MeasureLimits {
  double share = kShareOfLink;  // of the time that the bursts take at most; 1: no pauses
  std::chrono::milliseconds burst{100};
  std::chrono::milliseconds time{1200};     // no burst begins later
  Bytes bytes = 4'000'000'000;              // of all bursts; one has at most a quarter
  Bytes rate = 0;                           // bytes per second that this host sends at most; 0: no limit
  std::size_t connections = 16;             // so many that each needs little of a processor
  std::chrono::milliseconds silence{2000};  // of the peer
};

// The peer's end of a new connection. Unsupported: its version can't be measured. The errors of
// Channel::connect.
Result<LinkEnd> look_at_peer(const std::shared_ptr<Security>& security, const Endpoint& peer,
                             std::chrono::milliseconds patience);

// One direction. An error, such as a transfer that stalls, is in the result.
WayRate measure(const std::shared_ptr<Security>& security, const Endpoint& peer, Way way,
                const MeasureLimits& limits);

}  // namespace spark::fleet
