// Moves bytes over the link to a peer for a moment, and takes the rate: through the port that serves peers,
// by several connections with TLS, as stagings do.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fleet/link/end.hpp"
#include "fleet/link/facts.hpp"
#include "fleet/transport/channel.hpp"

namespace spark::fleet {

enum class Way { From, To };  // the peer

// Of one direction: whichever ends first.
struct MeasureLimits {
  std::chrono::milliseconds time{1200};
  Bytes bytes = 4'000'000'000;
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
