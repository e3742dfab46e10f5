// A folder whose file system is not mounted, or not yet, at a start of the host.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/kernel/mount_table.hpp"

namespace spark::workers {

// The mount point of a line of this fstab on the way to `path` at which nothing is mounted; empty means that
// there is none. A line with `noauto` does not say that something should be mounted. Follows links.
std::filesystem::path unmounted_on_the_way(std::string_view fstab, const std::vector<mounts::Mount>& table,
                                           const std::filesystem::path& path);

// The same for this host's /etc/fstab, as it is now. Empty if it can't be read.
std::filesystem::path unmounted_on_the_way(const std::filesystem::path& path);

}  // namespace spark::workers
