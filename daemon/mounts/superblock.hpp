// The superblock is the probe: one direct read tells type, identity, and whether a writer has the file system
// open. Opens the device and may block: workers only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::mounts {

struct Superblock {
  std::string type;  // "ext4", "xfs", "btrfs", …; empty: no signature at all
  std::string uuid, label;
  std::string partition_table;  // "gpt", "dos"; empty: none
  Bytes bytes = 0;
  bool being_written = false;   // ext4: needs_recovery (a writer has it open, or died); xfs: log not clean
  bool has_mmp = false;         // ext4 multi-mount protection
  unsigned mmp_interval_s = 0;  // its update interval; a mount waits about twice this
  bool has_errors = false;      // ext4: error flag set, fsck wanted
  double read_us = 0;           // how long the direct read took
};

// Errors name the device. NotFound: no such device.
Result<Superblock> read_superblock(const std::filesystem::path& device);

}  // namespace spark::mounts
