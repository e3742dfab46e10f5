// Mounts and unmounts by libmount. Needs root. Every call may block indefinitely: workers only. Use it from
// one thread of a dedicated process: an NFS mount temporarily redirects the process's standard error.
#pragma once

#include "base/result.hpp"
#include "daemon/mounts/mounter.hpp"

namespace spark::mounts {

// AlreadyThere: the same source is mounted there already, with the requested writability. Unavailable: the
// device now has another file system than requested. Refused: the mount point is not a folder, contains
// files or is reached through a symbolic link; something else is mounted there; the device is mounted
// elsewhere with the other writability; or another host has it open (MMP, which takes about twice its
// interval to detect it). Unsupported: the kernel or a helper program lacks the type. NFS: Unavailable,
// TimedOut, Denied, NotFound as reported by the server. Done is returned only after a check of the mount
// table.
Result<Change> mount(const MountRequest& request);
// AlreadyThere: nothing is mounted there. Refused: in use, with the users' names and pids in the error.
Result<Change> unmount(const std::filesystem::path& target, Unmount how);

}  // namespace spark::mounts
