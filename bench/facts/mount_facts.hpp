// Which mount a path lies on, read from mountinfo alone: nothing here touches the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/record/facts.hpp"

namespace spark::bench {

// The mount that holds the absolute, resolved `path`: the deepest mount point above it, of two at one place
// the later. `device` is the path's st_dev; a mount of that device is preferred (btrfs reports others).
std::optional<MountFacts> find_mount(std::string_view mountinfo, std::string_view path, std::uint64_t device);

}  // namespace spark::bench
