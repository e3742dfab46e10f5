// Paths as the kernel names them, without waiting for anything that is mounted.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"

namespace spark::host {

// Without symbolic links. Nothing at or below a mount is looked at, which could hang: what is behind one
// stays as it is.
std::string real_path(const SystemRoot& root, const std::vector<mounts::Mount>& mounts,
                      const std::string& mount);

}  // namespace spark::host
