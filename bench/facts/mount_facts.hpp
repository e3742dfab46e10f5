// Finds the mount of a path in the mount table; nothing here touches the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// The mount that contains the absolute, resolved `path`: the deepest mount point above it, or the later of
// two at the same mount point. `device` is the path's st_dev. A mount of that device is preferred (btrfs
// reports a different st_dev).
std::optional<MountFacts> find_mount(const std::vector<mounts::Mount>& table, std::string_view path,
                                     std::uint64_t device);

}  // namespace spark::bench
