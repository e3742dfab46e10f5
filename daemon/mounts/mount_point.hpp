// The folder that a volume is mounted on.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark::mounts {

// Made with its parents (mode 0755) if missing. Refused: not a folder, not empty, or reached through a
// symbolic link (the mount would stand under another name than the config's).
Result<> prepare_mount_point(const std::filesystem::path& target);

// Whether the file system mounted there still gives the names in its root; false: nothing but errors, as
// after a shutdown (xfs shows that nowhere else), or when the device under it holds something else by now.
// Blocks with its device.
Result<bool> gives_names(const std::filesystem::path& target);

}  // namespace spark::mounts
