#include "daemon/mounts/filesystems/superblock.hpp"

#include <chrono>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/direct_read.hpp"
#include "daemon/mounts/filesystems/ext4.hpp"
#include "daemon/mounts/filesystems/identity.hpp"
#include "daemon/mounts/filesystems/xfs.hpp"

namespace spark::mounts {
namespace {

constexpr std::size_t kStartBytes = 4096;  // contains the superblocks of ext4 and of xfs

// FNV-1a.
std::uint64_t stamp_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Result<> parse(const DirectReader& device, const std::vector<std::uint8_t>& start, Superblock& superblock) {
  superblock.stamp = stamp_of(start);
  if (const auto log = parse_xfs(start, superblock)) {
    const auto clean = xfs_log_is_clean(device, *log);
    if (!clean) return clean.take_error();
    superblock.being_written = !*clean;
  } else if (parse_ext4(start, superblock)) {
    if (auto read = read_mmp(device, start, superblock); !read) return read;
  }
  if (superblock.damage.empty() && superblock.filesystem_bytes > superblock.bytes)
    superblock.damage = "the file system has " + std::to_string(superblock.filesystem_bytes) +
                        " bytes, but the device only " + std::to_string(superblock.bytes) +
                        "; it was truncated, or this is the wrong device";
  return {};
}

}  // namespace

std::chrono::seconds mmp_wait(const Superblock& superblock, bool alone) {
  if (!superblock.has_mmp) return {};
  const bool is_open = superblock.mmp_open || (superblock.mmp_claimed && !alone);  // to the kernel
  const int times = is_open ? 2 : alone ? 1 : 0;
  return std::chrono::seconds(times * (2 * superblock.mmp_interval_s + 1));
}

Result<Superblock> probe_superblock(const std::filesystem::path& device) {
  const auto reader = DirectReader::open(device);
  if (!reader) return reader.take_error();
  Superblock superblock;
  superblock.bytes = reader->size();
  const auto before = std::chrono::steady_clock::now();
  const auto start = reader->read(0, kStartBytes);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
  if (!start) return start.take_error();
  superblock.read_us = took.count();
  const auto parsed = parse(*reader, *start, superblock);
  if (!parsed) return fail_with(parsed.error(), printable(device.native()));
  return superblock;
}

Result<Superblock> read_superblock(const std::filesystem::path& device) {
  auto superblock = probe_superblock(device);
  if (!superblock) return superblock;
  const auto identity = identify(device);
  if (!identity) return identity.take_error();
  superblock->partition_table = identity->partition_table;
  superblock->is_claimed = is_device_claimed(device);
  // If both know the type, the direct read is more recent.
  if (superblock->type.empty()) {
    superblock->type = identity->type;
    superblock->uuid = identity->uuid;
    superblock->label = identity->label;
  }
  return superblock;
}

}  // namespace spark::mounts
