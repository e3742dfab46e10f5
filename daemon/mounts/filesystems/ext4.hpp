// The on-disk format of ext2/3/4; only the fields that decide whether and how to mount it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/mounts/filesystems/direct_read.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"

namespace spark::mounts {

inline constexpr std::size_t kExt4Offset = 1024, kExt4Bytes = 1024;

// Fills `superblock` from the device's first bytes; false if there is no ext file system.
bool parse_ext4(const std::vector<std::uint8_t>& start, Superblock& superblock);

// The MMP block, if has_mmp: the current or last holder of the file system, and the interval in use.
Result<> read_mmp(const DirectReader& device, const std::vector<std::uint8_t>& start, Superblock& superblock);

// Describes a file system in which the kernel found errors; 0 means marked, but not counted.
std::string recorded_errors(const std::string& type, std::uint32_t count);

// As blkid prints it.
std::string uuid_text(const std::uint8_t* bytes);
// Up to the first zero byte, made safe for a terminal.
std::string label_text(const std::uint8_t* bytes, std::size_t length);

}  // namespace spark::mounts
