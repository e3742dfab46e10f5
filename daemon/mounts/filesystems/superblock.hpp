// The superblock as a probe: one direct read returns the type, the identity, and whether a writer has the
// file system open. Opens the device and may block: workers only.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::mounts {

struct Superblock {
  std::string type;  // "ext4", "xfs", "btrfs", …; empty means no signature at all
  std::string uuid, label;
  std::string partition_table;  // "gpt", "dos"; empty means none
  Bytes bytes = 0;              // of the device
  Bytes filesystem_bytes = 0;   // as recorded in the file system; 0 for an unknown type

  // A writer has it open, or died while it had. ext4: needs_recovery, or, without a journal, not cleanly
  // unmounted. xfs: its log does not end with an unmount record. An xfs writer that has changed nothing since
  // it mounted is not detected, because xfs writes nothing then.
  bool being_written = false;
  bool has_mmp = false;         // ext4 multi-mount protection
  unsigned mmp_interval_s = 0;  // its check interval; a mount waits about twice the interval plus a second
  std::string mmp_node;         // host that wrote the MMP block last; empty if never mounted with MMP
  bool mmp_open = false;        // according to the MMP block, this node has it mounted, or died while it had
  bool mmp_claimed = false;     // by a mounter, which may have died (mmp_claim.hpp): to the kernel it is open
  std::string damage;           // why it must not be mounted for writing; empty if no errors are recorded

  // A mount in any namespace, or another program, has the device. Only read_superblock() looks.
  bool is_claimed = false;

  // Changes with every write of the superblock: a reader mounted before such a write has outdated data.
  std::uint64_t stamp = 0;
  // Changes with every mount for writing, by any host, and not otherwise; 0 means unknown (xfs has no such
  // count).
  std::uint64_t mounts = 0;
  double read_us = 0;  // duration of the direct read
};

// How long multi-mount protection delays a mount for writing. If the last writer did not close the file
// system, the kernel waits twice, each time for two intervals and a second. For a closed one it does not
// wait, so without a reservation (`alone`) the mounter waits once (mmp_claim.hpp), and replaces a claim.
std::chrono::seconds mmp_wait(const Superblock& superblock, bool alone);

// The complete check before a mount. Errors name the device. NotFound if there is no such device; Refused if
// there are signatures of more than one file system.
Result<Superblock> read_superblock(const std::filesystem::path& device);

// As read_superblock, but only by direct reads of a few blocks: types other than ext4 and xfs are reported as
// none, and partition tables are not checked. The probe of a mounted volume.
Result<Superblock> probe_superblock(const std::filesystem::path& device);

}  // namespace spark::mounts
