// What keeps a mounted file system busy without a process that has a file of it open: fuser(1) does not name
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"

namespace spark::host {

struct Use {
  std::string what;                          // "a swap file"
  std::string where;                         // "/mnt/data/swap"; of an overlay its mount point
  std::string origin;                        // "/proc/swaps"
  std::vector<std::filesystem::path> needs;  // files and folders
  std::string verb, operand;                 // of the command that ends it: "swapoff", "/mnt/data/swap"
};

// Swap files, images behind loop devices, and overlays that are mounted now. Reads nothing of a mounted file
// system.
std::vector<Use> uses_now(const SystemRoot& root, const std::vector<mounts::Mount>& mounts);

// Whether it needs something at or below the mount point.
bool needs(const Use& use, const std::string& mount);

}  // namespace spark::host
