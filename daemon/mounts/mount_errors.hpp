// Explains why a mount or unmount failed, with the next step.
#pragma once

#include <string>

#include "base/kernel/log.hpp"
#include "base/result.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/libmount_call.hpp"
#include "daemon/mounts/mounter.hpp"

namespace spark::mounts {

// "mounting /dev/nvme0n1 at /mnt/a": the beginning of every error about it.
std::string doing(const MountRequest& request);

// The kernel's words on the mount of the device ("/dev/nvme3n1") that just failed; empty: none.
std::string kernel_words(const MountOutcome& outcome, KernelLog& log, const std::filesystem::path& device,
                         const std::string& type);

// For a block device. `superblock` was read before the mount; `kernel_words` has the kernel's messages about
// the device since then, or is empty.
Error explain_block_mount(const MountRequest& request, int error_number, const Superblock& superblock,
                          const std::string& kernel_words);

// For NFS, from the output of mount.nfs on standard error.
Error explain_nfs_mount(const MountRequest& request, const MountOutcome& outcome);

}  // namespace spark::mounts
