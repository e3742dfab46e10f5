// The storage under a mount (local drive, NVMe over a network, NAS), its settings, and the counter of its
// bytes.
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

// `device` is the path's st_dev.
StorageFacts read_storage_facts(const SystemRoot& root, const MountFacts& mount, std::uint64_t device);

// State that must not change during a cell: the mount options, and each controller with its state.
std::string state_of(const SystemRoot& root, const StorageFacts& facts, const std::string& mount_options);

// The network card on the route to `address`; empty if there is none. Sends nothing.
std::string nic_towards(const std::string& address);

}  // namespace spark::bench
