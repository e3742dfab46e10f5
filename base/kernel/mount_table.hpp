// The current mounts, from /proc/self/mountinfo. Never accesses a mount point: safe on the daemon's thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
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
      parent_id = 0;       // the kernel's numbers; the parent of a mount on top of another is the lower mount
  std::string root = "/";  // the mounted folder of the file system; "/FOLDER" for a bind mount of a part
};

// Of a mount that the daemon has checked, a whole file system; workers compare them before they use what is
// mounted there. The kernel reuses the numbers of mounts that are gone, but seldom both at once. 0: any.
struct MountNumbers {
  int id = 0;
  dev_t device = 0;
};
bool is_mount(const Mount& mount, const MountNumbers& numbers);
inline json::object to_json(const MountNumbers& numbers) {
  return {{"id", numbers.id}, {"device", numbers.device}};
}

// As that process sees them: its number, "self", or "thread-self". Bounded: more than 100,000 lines is an
// error (a runaway mount loop must not take the daemon down).
Result<std::vector<Mount>> read_mount_table(const SystemRoot& root, const std::string& process = "self");

// The text of a mountinfo file. Invalid lines are skipped: the kernel may add formats, and one such line must
// not hide every volume.
std::vector<Mount> parse_mount_table(std::string_view text);

// The mounts at exactly `target`, the topmost first. Programs may not reach them: see covering().
std::vector<const Mount*> stack_at(const std::vector<Mount>& table, const std::filesystem::path& target);

// A mount over a parent folder of `mount`'s target, made later, so that the path no longer leads to `mount`.
// Null if there is none. Mounts on top of `mount` itself do not count.
const Mount* covering(const std::vector<Mount>& table, const Mount& mount);

// The mount that programs reach at `target`, or null.
const Mount* mounted_at(const std::vector<Mount>& table, const std::filesystem::path& target);

// The mount that contains `path` by its name, links not followed; null for a relative path.
const Mount* carrier_of(const std::vector<Mount>& table, const std::filesystem::path& path);

// Whether a comma-separated list ("ro,noatime,vers=4.2") has the option `name`, with or without a value.
bool has_option(std::string_view options, std::string_view name);

// It can't be written through: because of its own flag or its file system's.
bool is_read_only(const Mount& mount);

}  // namespace spark::mounts
