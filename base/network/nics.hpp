// This host's network cards, as sysfs shows them.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark {

struct Nic {
  std::string name;
  bool is_up = false, is_wireless = false;
  unsigned megabits = 0;       // 0: it does not tell
  unsigned pcie_megabits = 0;  // of its PCIe link; 0: it has none
  unsigned mtu = 0;
  Bytes received = 0, sent = 0;       // since it was made; with RDMA, as far as the driver counts it apart
  std::vector<std::string> networks;  // "192.168.0.188/24"
  std::string port;                   // equal for the cards that one port may consist of; empty: unknown
  std::string pci;                    // "0000:01:00.0"
};

// Without lo, and without networks, which sysfs does not have.
std::vector<Nic> read_nics(const SystemRoot& root);
const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name);

// The other half of a port that consists of two cards, like each port of a DGX Spark. Null: there is none.
const Nic* other_half(const std::vector<Nic>& nics, const Nic& nic);

// Whether the address lies in the network "192.168.0.188/24".
bool is_in_network(const std::string& address, const std::string& network);

// "200 Gb/s", "2.5 Gb/s", "93.4 Mb/s": three significant digits at most.
std::string format_bits(double bits_per_second);
// "200 Gb/s", "unknown speed"
std::string speed_of(const Nic& nic);

}  // namespace spark
