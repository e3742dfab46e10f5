// The on-disk format of xfs; only the fields that decide whether and how to mount it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.hpp"
#include "daemon/mounts/filesystems/direct_read.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"

namespace spark::mounts {

// Location of the log, in bytes of the device.
struct XfsLog {
  Bytes offset = 0, bytes = 0;  // bytes 0: on another device, or missing
};

// Fills `superblock` from the device's first bytes; no value if there is no xfs.
std::optional<XfsLog> parse_xfs(const std::vector<std::uint8_t>& start, Superblock& superblock);

// Whether the last record in the log is an unmount record. An unreadable log counts as not clean.
Result<bool> xfs_log_is_clean(const DirectReader& device, const XfsLog& log);

// Whether the kernel still has an xfs that has lost its disk: a detached mount that still has users. The
// kernel then refuses to mount the file system on the returned disk because of the duplicate UUID (mount
// option nouuid).
bool has_dead_xfs(const SystemRoot& root);

}  // namespace spark::mounts
