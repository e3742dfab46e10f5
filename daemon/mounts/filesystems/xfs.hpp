// xfs as it lies on the disk; only what decides whether and how to mount it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.hpp"
#include "daemon/mounts/filesystems/direct_read.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"

namespace spark::mounts {

// Where the log is, in bytes of the device.
struct XfsLog {
  Bytes offset = 0, bytes = 0;  // bytes 0: on another device, or nowhere
};

// Fills `superblock` from the device's first bytes; no value if there is no xfs.
std::optional<XfsLog> parse_xfs(const std::vector<std::uint8_t>& start, Superblock& superblock);

// Whether the last record in the log is that of an unmount. What can't be made sense of is not clean.
Result<bool> xfs_log_is_clean(const DirectReader& device, const XfsLog& log);

// Whether an xfs lives on in the kernel although its disk is gone: a mount that was detached and still has
// users. The kernel then refuses the file system under its own UUID (mount option nouuid) on the disk that
// came back.
bool has_dead_xfs(const SystemRoot& root);

}  // namespace spark::mounts
