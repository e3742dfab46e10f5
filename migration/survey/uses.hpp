// What keeps a mounted file system busy without a process that has a file of it open: fuser(1) does not name
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "migration/survey/fabric_devices.hpp"

namespace spark::host {

struct Use {
  std::string what;                          // "a swap file"
  std::string where;                         // "/mnt/data/swap"; of an overlay its mount point
  std::string origin;                        // "/proc/swaps"
  std::vector<std::filesystem::path> needs;  // files and folders
  std::string verb, operand;                 // of the command that ends it: "swapoff", "/mnt/data/swap"
};

// Swap files, images behind loop devices, overlays that are mounted now, and other mounts: each may need a
// folder of another one, or be of its device. Reads nothing of a mounted file system.
std::vector<Use> uses_now(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                          const std::vector<mounts::Mount>& mounts);

// Whether it needs something at or below the mount point.
bool needs(const Use& use, const std::string& mount);

}  // namespace spark::host
