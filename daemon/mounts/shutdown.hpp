// Ends a file system's writing without flushing what it has not written yet.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "daemon/mounts/table.hpp"

namespace spark::mounts {

// From here on the file system mounted at `target` gives nothing but errors, and neither its journal nor its
// dirty pages reach the device (ext4 and xfs). For a host that has lost the right to write: an unmount or a
// remount would flush first. Refused: something else than `device` is mounted there. May block: workers only.
Result<> shut_down_filesystem(const std::filesystem::path& target, const std::string& device);

// What waits for the mount's NFS server ends with EIO, now and from here on. Linux 6.5 and later; false where
// the kernel can't.
bool shut_down_nfs(const SystemRoot& root, const Mount& mount);

}  // namespace spark::mounts
