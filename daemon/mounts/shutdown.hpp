// Stops a file system's writes without flushing its unwritten data.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"

namespace spark::mounts {

// From now on all access to the file system mounted at `target` fails, and neither its journal nor its dirty
// pages reach the device (ext4 and xfs). For a host that has lost the right to write: an unmount or a remount
// would flush first. Nothing is left to do for one that has shut itself down. The mount of `device` may lie
// below others; an error if there is none. May block: workers only.
Result<> shut_down_filesystem(const std::filesystem::path& target, const std::string& device);

// Requests that wait for the mount's NFS server fail with EIO, now and in the future. Linux 6.5 and later;
// false if the kernel can't.
bool shut_down_nfs(const SystemRoot& root, const Mount& mount);

}  // namespace spark::mounts
