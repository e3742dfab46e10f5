// Why a mount or unmount failed, in a person's words, with the next step.
#pragma once

#include <string>

#include "base/result.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/libmount_call.hpp"
#include "daemon/mounts/mounter.hpp"

namespace spark::mounts {

// "mounting /dev/nvme0n1 at /mnt/a": how every error about it begins.
std::string doing(const MountRequest& request);

// For a block device. `superblock` as it was before the mount, `kernel_words` what the kernel logged about
// the device meanwhile, or nothing.
Error explain_block_mount(const MountRequest& request, int error_number, const Superblock& superblock,
                          const std::string& kernel_words);

// For NFS, from what mount.nfs wrote to standard error.
Error explain_nfs_mount(const MountRequest& request, const MountOutcome& outcome);

}  // namespace spark::mounts
