// mount(8) and umount(8) as two calls. Only libmount_call.cpp uses libmount.
#pragma once

#include <filesystem>
#include <string>

#include "base/kernel/mount_table.hpp"

namespace spark::mounts {

// The result of a call. If neither number is set, it succeeded.
struct MountOutcome {
  int error_number = 0;      // errno of the system call, or of libmount before it
  int helper_status = 0;     // exit status of mount.nfs and the like
  std::string helper_words;  // the helper's output on standard error
  std::string
      kernel_words;  // the kernel's messages to the caller of a file system context; older libmount: none
  bool done() const { return error_number == 0 && helper_status == 0; }
};

MountOutcome call_mount(const std::string& source, const std::filesystem::path& target,
                        const std::string& type, const std::string& options);
// Changes only whether it is writable; affects every mount of the same file system.
MountOutcome call_remount(const Mount& mount, bool read_only);
// Force: MNT_FORCE, by which NFS aborts requests that wait for its server; a mount in use stays mounted.
// Detach: MNT_FORCE and MNT_DETACH.
enum class UnmountCall { Plain, Force, Detach };
// Without helpers: umount.nfs would contact a dead server.
MountOutcome call_unmount(const std::filesystem::path& target, UnmountCall how);

}  // namespace spark::mounts
