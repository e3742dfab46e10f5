// The folder that a volume is mounted on.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark::mounts {

// Made with its parents (mode 0755) if missing. Refused: not a folder, or reached through a symbolic link
// (the mount would stand under another name than the config's).
Result<> make_mount_point(const std::filesystem::path& target);

// Refused: it holds something, which a mount would hide.
Result<> check_empty(const std::filesystem::path& target);

}  // namespace spark::mounts
