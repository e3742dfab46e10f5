// This host's network cards, and the way to an address, as sysfs and iproute2 tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {

struct Nic {
  std::string name;
  bool is_up = false, is_wireless = false;
  unsigned megabits = 0;  // 0: it does not tell
  unsigned mtu = 0;
  Bytes received = 0, sent = 0;       // since it was made
  std::vector<std::string> networks;  // "192.168.0.188/24"
};

// Without lo, as sysfs has them: no networks.
std::vector<Nic> read_nics(const SystemRoot& root);
// With their addresses, which are asked of `ip`; without it the networks are empty.
std::vector<Nic> list_nics(const Host& host);
const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name);

struct Route {
  std::string interface;
  std::string gateway;  // empty: the address is in a network of this host's
};

// The way that the kernel takes now; through `interface` alone if that is given. Unavailable: there is none.
Result<Route> route_to(const Host& host, const std::string& address, const std::string& interface);

// Whether the address lies in the network "192.168.0.188/24".
bool is_in_network(const std::string& address, const std::string& network);

// "200 Gb/s", "100 Mb/s", "unknown speed"
std::string speed_of(const Nic& nic);

}  // namespace spark::doctor
