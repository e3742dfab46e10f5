// IP addresses: behind names, of sockets, of this host.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// As getaddrinfo() does, for TCP, with its flags; blocks on the name service. Unavailable, with the reason.
Result<AddressList> look_up(const std::string& name, std::uint16_t port, int flags);
// Of a host name, which may have the addresses of several hosts.
Result<std::vector<std::string>> addresses_behind(const std::string& name);

// The remote address of a connection, without its port.
std::string address_of(int socket);
// That of this host.
std::string local_address_of(int socket);

// The network interface with this address; empty if there is none in this network namespace.
std::string interface_of(const std::string& address);

// The address of this host from which packets to the other one leave. Sends nothing. Unavailable: there is no
// route.
Result<std::string> address_towards(const std::string& other);

// The addresses of this host's interfaces without those that only it or its link knows, in a fixed order.
std::vector<std::string> own_addresses();
bool is_any_address(const std::string& address);  // 0.0.0.0 or ::

}  // namespace spark
