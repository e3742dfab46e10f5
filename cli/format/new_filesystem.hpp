// The first file system of a device that holds nothing at all. Opens the device and may block: in a process
// of its own, with a deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::cli {

struct NewFilesystem {
  std::string type;         // "ext4" with multi-mount protection, or "xfs"
  std::string label, uuid;  // neither is empty
};

// Checks a label; Invalid has the reason.
Result<> check_label(const std::string& label, const std::string& type);
std::size_t longest_label(const std::string& type);

// Where every file system, partition table, volume manager and array has a signature, or a copy of it: so
// much of the device's beginning and of its end is read, and has to be zeros.
inline constexpr Bytes kBlankEnds = 4 * kMiB;

// Metadata that an attempt of ours left there when it was cut off, before the superblock that would have made
// it a file system: they are no zeros. A signature counts as one nevertheless.
enum class Leftovers { None, Ours };

struct BlankDevice {
  std::string path;  // "/dev/nvme3n1"
  dev_t number = 0;  // the device expected under that name: after a reconnect it may be another disk
  Leftovers leftovers = Leftovers::None;
};

// Refused, with the finding: in use on this host, a signature of any kind, or an end that is not blank.
// Changes nothing.
Result<> check_blank(const BlankDevice& device);

// Checks it again and makes the file system, by mkfs of e2fsprogs or xfsprogs; then reads it back from the
// device. `before_writing` is called when nothing but the writing is left to do. One that is cut off is no
// file system: mkfs.ext4 flushes all else before it writes the superblock, as the last thing; mkfs.xfs marks
// its superblock as unfinished until its last write, and such a one can't be mounted.
Result<> make_filesystem(const BlankDevice& device, const NewFilesystem& wanted,
                         const std::function<Result<>()>& before_writing, std::chrono::milliseconds deadline);

}  // namespace spark::cli
