// Prevents every process, including root's, from writing under a mount point while nothing is mounted there:
// the folder has the immutable attribute. The attribute persists across reboots, permits mounting, and is
// hidden by a mount.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::mounts {

// The folder of all records, in the state folder: a symbolic link for each guarded mount point.
inline constexpr char kGuardRecords[] = "mount-points";

struct GuardRequest {
  std::filesystem::path mount_point;
  std::filesystem::path records;
  bool is_in_use = false;  // the volume is mounted there now
};

struct Guard {
  bool is_ours = false;            // the folder has no other known use, so a volume may hide its files
  std::string gap;                 // a sentence: why it is still writable; empty means that it is not
  std::vector<std::string> files;  // names in the folder itself, the first few
};

// Creates the folder if it is missing, and finds it below a mount. A folder that contains files and was never
// guarded is left unchanged, unless the volume is mounted there, because it may have another use. Refused if
// it is not a folder, or is reached through a symbolic link. May block with the file system below: workers
// only.
Result<Guard> guard_mount_point(const GuardRequest& request);

// Removes the attribute from each recorded mount point that is not in `keep`. Failures stay recorded; the
// first error is returned.
Result<> remove_guards(const std::filesystem::path& records, const std::set<std::filesystem::path>& keep);

}  // namespace spark::mounts
