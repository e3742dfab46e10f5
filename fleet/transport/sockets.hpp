// TCP between the hosts of a fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "fleet/transport/interrupt.hpp"

namespace spark::fleet {

struct Endpoint {
  std::string address;  // an IP address, or a name that is resolved at every attempt
  std::uint16_t port = 0;
};

// "10.0.0.1:7789", "[fd00::1]:7789"
std::string to_string(const Endpoint& endpoint);

// Neither blocks: the caller polls for accepting and connecting. Unavailable: the address is in use, or does
// not belong to this host.
Result<UniqueFd> listen_on(const Endpoint& at);

// Unavailable, TimedOut after `patience`, or Cancelled: `interrupt` is set (null: never).
Result<UniqueFd> connect_to(const Endpoint& to, std::chrono::milliseconds patience,
                            const Interrupt* interrupt = nullptr);

// The kernel's counts of a connection: bytes that arrived, and those sent that arrived at the other side. 0
// if the kernel does not count.
struct TcpBytes {
  std::uint64_t received = 0, acknowledged = 0;
};
TcpBytes tcp_bytes_of(int socket);

}  // namespace spark::fleet
