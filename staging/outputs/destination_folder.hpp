// The folder on a volume that outputs are published in.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::staging {

// Makes `folder` below the volume's mount point, and makes new folders durable. `folder` is relative; empty
// means the mount point itself. Gives its absolute path. Invalid if a component is a symbolic link, or is on
// another mount.
Result<std::filesystem::path> make_destination_folder(const std::filesystem::path& mount_point,
                                                      const std::string& folder);

}  // namespace spark::staging
