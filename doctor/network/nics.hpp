// The addresses of this host's network cards, and the way to an address, as iproute2 tells.
#pragma once

#include <string>
#include <vector>

#include "base/network/nics.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {

// With their addresses, which are asked of `ip`; without it the networks are empty.
std::vector<Nic> list_nics(const Host& host);

struct Route {
  std::string interface;
  std::string gateway;  // empty: the address is in a network of this host's
};

// The way that the kernel takes now; through `interface` alone if that is given. Unavailable: there is none.
Result<Route> route_to(const Host& host, const std::string& address, const std::string& interface);

}  // namespace spark::doctor
