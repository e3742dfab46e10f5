// mount(8) and umount(8) as two calls. The only file that sees libmount is libmount_call.cpp.
#pragma once

#include <filesystem>
#include <string>

#include "daemon/mounts/table.hpp"

namespace spark::mounts {

// How a call went. Neither number set: done.
struct MountOutcome {
  int error_number = 0;      // errno of the system call, or of libmount before it
  int helper_status = 0;     // exit status of mount.nfs and the like
  std::string helper_words;  // what the helper wrote to standard error
  std::string
      kernel_words;  // what the kernel told the caller of a file system context; older libmount: nothing
  bool done() const { return error_number == 0 && helper_status == 0; }
};

MountOutcome call_mount(const std::string& source, const std::filesystem::path& target,
                        const std::string& type, const std::string& options);
// As it is, but for who may write; a file system that several places show is changed in all of them.
MountOutcome call_remount(const Mount& mount, bool read_only);
// Force: MNT_FORCE, by which NFS gives up what waits for its server; in use, it stays mounted. Detach: that
// and MNT_DETACH.
enum class Unmount { Plain, Force, Detach };
// Without helpers: umount.nfs would ask a dead server.
MountOutcome call_unmount(const std::filesystem::path& target, Unmount how);

}  // namespace spark::mounts
