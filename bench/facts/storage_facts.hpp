// What lies under a mount: a local drive, NVMe over a network, a NAS; its settings, and where its bytes are
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "bench/facts/counters.hpp"
#include "bench/facts/mount_facts.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// `device`: st_dev of the path.
StorageFacts read_storage_facts(const SystemRoot& root, const MountFacts& mount, std::uint64_t device);

// What has to be the same before and after a cell: mount options, and each controller with its state.
std::string state_of(const SystemRoot& root, const StorageFacts& facts, const std::string& mount_options);

// The network card that packets to `address` would leave by; empty if there is none. Sends nothing.
std::string nic_towards(const std::string& address);

}  // namespace spark::bench
