// Keeps every process, root's too, from writing under a mount point while nothing is mounted there: the
// folder has the immutable attribute. That lasts across reboots, permits mounting, and is hidden by what is
// mounted.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::mounts {

// The folder of all records, in the state folder: a symbolic link for each mount point that was guarded.
inline constexpr char kGuardRecords[] = "mount-points";

struct GuardRequest {
  std::filesystem::path mount_point;
  std::filesystem::path records;
  bool is_in_use = false;  // what is mounted there now is the volume
};

struct Guard {
  bool is_ours = false;            // no other use is known of the folder: a volume may hide what is in it
  std::string gap;                 // a sentence: why it can be written to nevertheless; empty: it can't
  std::vector<std::string> files;  // names in the folder itself, the first few
};

// Makes the folder if it is missing, and finds it under what is mounted on it. A folder that holds files and
// was never guarded before is left as it is, unless the volume is mounted there: it may have another use.
// Refused: not a folder, or reached through a symbolic link. May block with the file system below: workers
// only.
Result<Guard> guard_mount_point(const GuardRequest& request);

// Removes the attribute from each recorded mount point that is not in `keep`. What can't be changed stays
// recorded; the error is the first one's.
Result<> remove_guards(const std::filesystem::path& records, const std::set<std::filesystem::path>& keep);

}  // namespace spark::mounts
