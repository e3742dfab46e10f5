// What lies under a mount: a local drive, NVMe over a network, a NAS; its settings, and where its bytes are
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/counters.hpp"
#include "bench/mount_facts.hpp"

namespace spark::bench {

enum class PathKind { Unknown, Local, RemoteBlock, Nas, Memory };
const char* to_string(PathKind kind);
PathKind path_kind_from(std::string_view name);

struct NicFacts {
  std::string name;
  double bytes_per_second = 0;  // link speed; 0: unknown
  unsigned mtu = 0;
  bool operator==(const NicFacts&) const = default;
};

struct StorageFacts {
  PathKind kind = PathKind::Unknown;
  std::string address;                                        // of the target; empty: local
  std::vector<std::string> controllers;                       // "nvme1"
  std::vector<std::pair<std::string, std::string>> settings;  // as sysfs and the mount say
  OriginSource origin;
  NicFacts nic;
};

// `device`: st_dev of the path.
StorageFacts read_storage_facts(const SystemRoot& root, const MountFacts& mount, std::uint64_t device);

// What has to be the same before and after a cell: mount options, and each controller with its state.
std::string state_of(const SystemRoot& root, const StorageFacts& facts, const std::string& mount_options);

// The network card that packets to `address` would leave by; empty if there is none. Sends nothing.
std::string nic_towards(const std::string& address);

}  // namespace spark::bench
