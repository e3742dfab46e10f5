// What is mounted now, from /proc/self/mountinfo. Never touches a mount point: safe on the daemon's thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::mounts {

struct Mount {
  std::string source;  // "/dev/nvme3n1", "10.0.0.1:/data"
  std::filesystem::path target;
  std::string type;           // "ext4", "xfs", "nfs4"
  std::string options;        // per mount: "ro,noatime"
  std::string super_options;  // of the file system: "ro,errors=remount-ro", "…,shutdown" on new kernels
  dev_t device_number = 0;
};

// Bounded: more than 100,000 lines is an error (a runaway mount loop must not take the daemon down).
Result<std::vector<Mount>> read_mount_table(const SystemRoot& root);

// The topmost mount at exactly `target`, or none.
const Mount* mounted_at(const std::vector<Mount>& table, const std::filesystem::path& target);

}  // namespace spark::mounts
