// The superblock is the probe: one direct read tells type, identity, and whether a writer has the file system
// open. Opens the device and may block: workers only.
#pragma once

#include <chrono>
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
  Bytes bytes = 0;              // of the device
  Bytes filesystem_bytes = 0;   // as the file system sees itself; 0: unknown type

  // A writer has it open, or died while it had. ext4: needs_recovery, or not cleanly unmounted where there is
  // no journal. xfs: its log doesn't end with an unmount; a writer that has changed nothing since it mounted
  // is not seen, as xfs writes nothing then.
  bool being_written = false;
  bool has_mmp = false;         // ext4 multi-mount protection
  unsigned mmp_interval_s = 0;  // its check interval; a mount waits about twice this and a second
  std::string mmp_node;   // who wrote the MMP block last: the host's node name; empty: never mounted with it
  bool mmp_open = false;  // MMP's block says that this node has it open, or died while it had
  std::string damage;     // why it must not be mounted for writing, in words; empty: nothing is recorded

  // Differs as soon as anybody has written the superblock again: what a reader mounted before then is old.
  std::uint64_t stamp = 0;
  double read_us = 0;  // how long the direct read took
};

// What multi-mount protection costs a mount for writing. Of a file system that its last writer did not close
// the kernel waits twice, each time for two intervals and a second; of a closed one not at all, so that
// without a reservation the mounter waits once (mmp_claim.hpp): `alone`.
std::chrono::seconds mmp_wait(const Superblock& superblock, bool alone);

// All of it, once before a mount. Errors name the device. NotFound: no such device. Refused: signatures of
// more than one file system.
Result<Superblock> read_superblock(const std::filesystem::path& device);

// As read_superblock, by direct reads of a few blocks alone: other types than ext4 and xfs come out as none,
// and partition tables are not looked for. The probe of a mounted volume.
Result<Superblock> probe_superblock(const std::filesystem::path& device);

}  // namespace spark::mounts
