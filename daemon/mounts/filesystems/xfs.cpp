#include "daemon/mounts/filesystems/xfs.hpp"

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "daemon/mounts/filesystems/ext4.hpp"

namespace spark::mounts {
namespace {

// Offsets within the superblock, big endian.
constexpr std::size_t kBlockSize = 4, kBlocks = 8, kXfsUuid = 32, kLogStart = 48, kAgBlocks = 84,
                      kAgCount = 88, kLogBlocks = 96, kXfsLabel = 108, kAgBlockLog = 124, kInProgress = 126,
                      kXfsIncompat = 216, kSuperblockBytes = 264;
constexpr std::uint32_t kNeedsRepair = 0x10;  // incompat

// The log is a ring of 512-byte blocks. The first word of each is the number of the cycle in which it was
// written, except in the first block of a record, which has the magic first and the cycle second.
constexpr Bytes kLogBlock = 512;
constexpr std::uint32_t kRecordMagic = 0xFEEDBABE;
constexpr Bytes kLongestRecord = 256 * kKiB + 16 * kLogBlock;  // data and headers
// Offsets within a record's header, and of the flags in the only operation of an unmount record.
constexpr std::size_t kVersion = 8, kLength = 12, kOperations = 40, kIclogSize = 320, kFlags = 9;
constexpr std::uint8_t kUnmount = 0x20;

std::uint32_t word(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return big_endian<std::uint32_t>(bytes.data() + at);
}

Result<std::uint32_t> round_of(const DirectReader& device, const XfsLog& log, Bytes block) {
  const auto bytes = device.read(log.offset + block * kLogBlock, kLogBlock);
  if (!bytes) return bytes.take_error();
  if (bytes->size() < kLogBlock) return fail(Errc::Failed, "the log ends behind the device");
  return word(*bytes, 0) == kRecordMagic ? word(*bytes, 4) : word(*bytes, 0);
}

// The block after the last written one: the first with another cycle than the first block's.
Result<Bytes> find_head(const DirectReader& device, const XfsLog& log) {
  const auto first = round_of(device, log, 0);
  if (!first) return first.take_error();
  // `low` has the first cycle; `high` has another one, or is the end.
  Bytes low = 0, high = log.bytes / kLogBlock;
  while (high - low > 1) {
    const Bytes middle = low + (high - low) / 2;
    const auto round = round_of(device, log, middle);
    if (!round) return round.take_error();
    (*round == *first ? low : high) = middle;
  }
  return high;
}

// The log's bytes before `head`, across the ring's end; at most the longest record's size.
Result<std::vector<std::uint8_t>> read_before(const DirectReader& device, const XfsLog& log, Bytes head) {
  const Bytes wanted = std::min(kLongestRecord, log.bytes);
  const Bytes direct = std::min(head * kLogBlock, wanted);
  std::vector<std::uint8_t> window;
  if (direct < wanted) {
    const Bytes wrapped = wanted - direct;
    auto end = device.read(log.offset + log.bytes - wrapped, wrapped);
    if (!end) return end;
    window = std::move(*end);
  }
  const auto before = device.read(log.offset + head * kLogBlock - direct, direct);
  if (!before) return before;
  window.insert(window.end(), before->begin(), before->end());
  if (window.size() != wanted) return fail(Errc::Failed, "the log ends behind the device");
  return window;
}

// Whether the record at `at` is an unmount record and ends with the window.
bool is_last_unmount(const std::vector<std::uint8_t>& window, std::size_t at) {
  if (window.size() - at < 2 * kLogBlock) return false;
  const std::uint32_t iclog_size = word(window, at + kIclogSize);
  const bool long_header = (word(window, at + kVersion) & 2) != 0 && iclog_size > 32 * kKiB;
  const Bytes header_blocks = long_header ? (iclog_size + 32 * kKiB - 1) / (32 * kKiB) : 1;
  const Bytes data_blocks = (Bytes{word(window, at + kLength)} + kLogBlock - 1) / kLogBlock;
  const std::size_t data = at + header_blocks * kLogBlock;
  return data_blocks > 0 && data + data_blocks * kLogBlock == window.size() &&
         word(window, at + kOperations) == 1 && (window[data + kFlags] & kUnmount) != 0;
}

}  // namespace

std::optional<XfsLog> parse_xfs(const std::vector<std::uint8_t>& start, Superblock& superblock) {
  if (start.size() < kSuperblockBytes || word(start, 0) != 0x58465342) return std::nullopt;  // "XFSB"
  const Bytes block_size = word(start, kBlockSize);
  const auto blocks = big_endian<std::uint64_t>(start.data() + kBlocks);
  const unsigned ag_shift = start[kAgBlockLog];
  const bool plausible = block_size >= 512 && block_size <= 65536 && ag_shift < 32 &&
                         blocks <= UINT64_MAX / 65536 && word(start, kAgCount) > 0;
  if (!plausible) return std::nullopt;
  superblock.type = "xfs";
  superblock.uuid = uuid_text(start.data() + kXfsUuid);
  superblock.label = label_text(start.data() + kXfsLabel, 12);
  superblock.filesystem_bytes = blocks * block_size;
  if ((word(start, kXfsIncompat) & kNeedsRepair) != 0 || start[kInProgress] != 0)
    superblock.damage = "its xfs is marked as in need of repair";

  // A block's number consists of its allocation group, shifted, and its position in the group.
  const auto log_start = big_endian<std::uint64_t>(start.data() + kLogStart);
  const Bytes group = log_start >> ag_shift, within = log_start & ((Bytes{1} << ag_shift) - 1);
  if (log_start == 0 || group >= word(start, kAgCount)) return XfsLog{};
  const XfsLog log{(group * word(start, kAgBlocks) + within) * block_size,
                   word(start, kLogBlocks) * block_size};
  const bool inside = log.offset < superblock.bytes && log.bytes <= superblock.bytes - log.offset;
  return inside ? log : XfsLog{};
}

Result<bool> xfs_log_is_clean(const DirectReader& device, const XfsLog& log) {
  if (log.bytes < 2 * kLogBlock) return false;
  const auto head = find_head(device, log);
  if (!head) return fail_with(head.error(), "reading the xfs log");
  const auto window = read_before(device, log, *head);
  if (!window) return fail_with(window.error(), "reading the xfs log");
  for (std::size_t at = window->size(); at >= kLogBlock;) {
    at -= kLogBlock;
    if (word(*window, at) == kRecordMagic) return is_last_unmount(*window, at);
  }
  return false;
}

// /sys/fs/xfs has a folder for each xfs in use, named after its disk.
bool has_dead_xfs(const SystemRoot& root) {
  namespace fs = std::filesystem;
  for (const fs::path& entry : list_folder(root / "sys/fs/xfs")) {
    const std::string name = entry.filename();
    std::error_code unknown;
    const bool has_disk = fs::exists(root / "sys/class/block" / name, unknown) || unknown;
    if (name.starts_with("nvme") && !has_disk) return true;
  }
  return false;
}

}  // namespace spark::mounts
