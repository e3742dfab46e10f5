// TCP between the hosts of a fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::fleet {

struct Endpoint {
  std::string address;  // an IP address, or a name that is looked up at every attempt
  std::uint16_t port = 0;
};

// "10.0.0.1:7789", "[fd00::1]:7789"
std::string to_string(const Endpoint& endpoint);

// Neither waits: accepting and connecting are the caller's to wait for. Unavailable: the address is in use,
// or not this host's.
Result<UniqueFd> listen_on(const Endpoint& at);

// Unavailable, or TimedOut after `patience`.
Result<UniqueFd> connect_to(const Endpoint& to, std::chrono::milliseconds patience);

// The address that a connection came from, without its port.
std::string address_of(int socket);

// The network interface that carries this address; empty: none of this network namespace.
std::string interface_of(const std::string& address);

// Resolves a host name: several addresses if it is the name of several peers.
Result<std::vector<std::string>> resolve(const std::string& name);

}  // namespace spark::fleet
