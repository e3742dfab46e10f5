// TCP between the hosts of a fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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

// The remote address of a connection, without its port.
std::string address_of(int socket);
// That of this host.
std::string local_address_of(int socket);

// The kernel's counts of a connection: bytes that arrived, and those sent that arrived at the other side. 0
// if the kernel does not count.
struct TcpBytes {
  std::uint64_t received = 0, acknowledged = 0;
};
TcpBytes tcp_bytes_of(int socket);

// The network interface with this address; empty if there is none in this network namespace.
std::string interface_of(const std::string& address);

// The address of this host from which packets to the other one leave. Sends nothing. Unavailable: there is no
// route.
Result<std::string> address_towards(const Endpoint& other);

// The addresses of this host's interfaces without those that only it or its link knows, in a fixed order.
std::vector<std::string> own_addresses();
bool is_any_address(const std::string& address);  // 0.0.0.0 or ::

// Resolves a host name, which may have the addresses of several peers.
Result<std::vector<std::string>> resolve(const std::string& name);

}  // namespace spark::fleet
