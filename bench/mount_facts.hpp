// Which mount a path lies on, read from mountinfo alone: nothing here touches the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spark::bench {

struct MountFacts {
  std::string mount_point, source, type;
  std::string options;  // of the mount and of the file system, comma-separated
};

// The mount that holds the absolute, resolved `path`: the deepest mount point above it, of two at one place
// the later. `device` is the path's st_dev; a mount of that device is preferred (btrfs reports others).
std::optional<MountFacts> find_mount(std::string_view mountinfo, std::string_view path, std::uint64_t device);

}  // namespace spark::bench
