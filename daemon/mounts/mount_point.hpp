// The folder that a volume is mounted on.
#pragma once

#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::mounts {

// Creates it with its parents (mode 0755) if missing. Refused if it is not a folder, or is reached through a
// symbolic link (the mount would have another path than in the config).
Result<> make_mount_point(const std::filesystem::path& target);

// The folder, or what is mounted on it, with O_PATH. Refused if a symbolic link is on the way by now.
Result<UniqueFd> open_mount_point(const std::filesystem::path& target);

// Refused if it is not empty: a mount would hide its content.
Result<> check_empty(const std::filesystem::path& target);

}  // namespace spark::mounts
