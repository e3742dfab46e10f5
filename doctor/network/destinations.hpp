// The storage servers that this host reaches over the network, from any configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/checks/host.hpp"
#include "migration/survey/survey.hpp"

namespace spark::doctor {

struct Destination {
  std::string name;    // in a sentence: "target rose", "192.168.0.100 (nvme-rosa-connect.service)"
  std::string target;  // in JSON: "rose"; else as `name`
  std::string address, interface;
  std::uint16_t port = 0;
  std::string key;      // where `interface:` belongs: "targets.rose"; empty: nowhere
  bool is_nfs = false;  // else NVMe/TCP
};

// The configured targets first, with their names; then units that connect, nvme-cli's files, connections
// that stand now, and NFS lines of fstab. Each address and card once, as far as that can be told without
// asking the name service.
std::vector<Destination> destinations_of(const Host& host, const host::Survey& survey);

}  // namespace spark::doctor
