// Processes that keep a mount busy. Reads only /proc, never the mount: it may be dead.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"

namespace spark::mounts {

struct User {
  pid_t pid = 0;        // 0: the kernel itself
  std::string command;  // from /proc/PID/comm
  std::string how;      // "open file", "working folder", …
};

// Also those in other mount namespaces, and the kernel's own: NFS exports, swap files, loop devices.
std::vector<User> users_of(const SystemRoot& root, const Mount& mount);

// Processes in other mount namespaces (containers) that see the device; one for each namespace.
std::vector<User> users_elsewhere(const SystemRoot& root, dev_t device);

// Processes with files of a live device that no mount shows any more, as after `umount -l`.
std::vector<User> users_of_detached(const SystemRoot& root, dev_t device);

// "python3 (pid 4711, open file), bash (pid 17, working folder) and 3 more"; also names mounts below it.
std::string describe_users(const std::vector<User>& users, const std::vector<Mount>& table,
                           const Mount& mount);

}  // namespace spark::mounts
