// What is mounted now, from /proc/self/mountinfo. Never touches a mount point: safe on the daemon's thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
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
  int id = 0,
      parent_id = 0;  // the kernel's numbers; the parent of a mount on top of another is the one below
};

// Bounded: more than 100,000 lines is an error (a runaway mount loop must not take the daemon down).
Result<std::vector<Mount>> read_mount_table(const SystemRoot& root);

// The text of a mountinfo file. Lines that are none are skipped: the kernel may add forms, and one of them
// must not hide every volume.
std::vector<Mount> parse_mount_table(std::string_view text);

// The mounts at exactly `target`, the topmost first.
std::vector<const Mount*> stack_at(const std::vector<Mount>& table, const std::filesystem::path& target);

// The topmost of them, or none.
const Mount* mounted_at(const std::vector<Mount>& table, const std::filesystem::path& target);

// The mount that `path` lies on by its name, links not followed; none for a path that is not absolute.
const Mount* carrier_of(const std::vector<Mount>& table, const std::filesystem::path& path);

// Whether a comma-separated list ("ro,noatime,vers=4.2") has the option `name`, with or without a value.
bool has_option(std::string_view options, std::string_view name);

// Nobody can write through it: by its own flag or by that of its file system.
bool is_read_only(const Mount& mount);

}  // namespace spark::mounts
