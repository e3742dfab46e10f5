#include "daemon/mounts/filesystems/ext4.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "daemon/mounts/filesystems/mmp_claim.hpp"

namespace spark::mounts {
namespace {

// Offsets within the superblock, little endian.
constexpr std::size_t kBlocksLow = 0x04, kLogBlockSize = 0x18, kMountTime = 0x2C, kMountCount = 0x34,
                      kMagic = 0x38, kState = 0x3A, kCompat = 0x5C, kIncompat = 0x60, kUuid = 0x68,
                      kLabel = 0x78, kBlocksHigh = 0x150, kMmpInterval = 0x166, kMmpBlock = 0x168,
                      kErrorCount = 0x194;
constexpr std::uint16_t kStateClean = 1, kStateErrors = 2;
constexpr std::uint32_t kHasJournal = 0x4;                                                    // compat
constexpr std::uint32_t kNeedsRecovery = 0x4, kIsJournal = 0x8, k64Bit = 0x80, kMmp = 0x100;  // incompat
constexpr std::uint32_t kOnlyExt4Incompat = 0x40 | k64Bit | kMmp | 0x200;  // extents, 64bit, mmp, flex_bg

// Offsets within the MMP block.
constexpr std::size_t kMmpSequence = 4, kMmpNode = 16, kMmpNodeBytes = 64, kMmpDevice = 80,
                      kMmpDeviceBytes = 32, kMmpCheckInterval = 112;
constexpr std::uint32_t kMmpMagic = 0x004D4D50, kMmpClean = 0xFF4D4D50;

const std::uint8_t* superblock_in(const std::vector<std::uint8_t>& start) {
  return start.size() < kExt4Offset + kExt4Bytes ? nullptr : start.data() + kExt4Offset;
}

Bytes block_size_of(const std::uint8_t* raw) {
  const auto log = little_endian<std::uint32_t>(raw + kLogBlockSize);
  return log <= 6 ? Bytes{1024} << log : 0;
}

const char* type_of(std::uint32_t compat, std::uint32_t incompat) {
  if ((incompat & kIsJournal) != 0) return "jbd";
  if ((incompat & kOnlyExt4Incompat) != 0) return "ext4";
  return (compat & kHasJournal) != 0 ? "ext3" : "ext2";
}

// The kernel marks a file system in which it found an error, and counts the errors until e2fsck has repaired
// it.
void check_damage(const std::uint8_t* raw, Superblock& superblock) {
  const auto errors = little_endian<std::uint32_t>(raw + kErrorCount);
  if ((little_endian<std::uint16_t>(raw + kState) & kStateErrors) != 0 || errors > 0)
    superblock.damage = recorded_errors(superblock.type, errors);
}

}  // namespace

std::string recorded_errors(const std::string& type, std::uint32_t count) {
  return "errors are recorded in its " + type +
         (count > 0 ? " (" + std::to_string(count) + " since the last e2fsck)" : "");
}

std::string uuid_text(const std::uint8_t* bytes) {
  if (std::all_of(bytes, bytes + 16, [](std::uint8_t byte) { return byte == 0; })) return {};
  return format_uuid(std::as_bytes(std::span(bytes, 16)));
}

std::string label_text(const std::uint8_t* bytes, std::size_t length) {
  const std::string_view whole(reinterpret_cast<const char*>(bytes), length);
  return printable(whole.substr(0, whole.find('\0')));
}

bool parse_ext4(const std::vector<std::uint8_t>& start, Superblock& superblock) {
  const std::uint8_t* raw = superblock_in(start);
  if (raw == nullptr || little_endian<std::uint16_t>(raw + kMagic) != 0xEF53 || block_size_of(raw) == 0) {
    return false;
  }
  const auto compat = little_endian<std::uint32_t>(raw + kCompat);
  const auto incompat = little_endian<std::uint32_t>(raw + kIncompat);
  const bool clean = (little_endian<std::uint16_t>(raw + kState) & kStateClean) != 0;
  superblock.type = type_of(compat, incompat);
  superblock.uuid = uuid_text(raw + kUuid);
  superblock.label = label_text(raw + kLabel, 16);
  Bytes blocks = little_endian<std::uint32_t>(raw + kBlocksLow);
  if ((incompat & k64Bit) != 0) blocks |= Bytes{little_endian<std::uint32_t>(raw + kBlocksHigh)} << 32;
  // A block count that overflows comes from a damaged superblock, and exceeds any device.
  const bool fits = blocks <= UINT64_MAX / block_size_of(raw);
  superblock.filesystem_bytes = fits ? blocks * block_size_of(raw) : UINT64_MAX;
  superblock.being_written = (incompat & kNeedsRecovery) != 0 || ((compat & kHasJournal) == 0 && !clean);
  superblock.has_mmp = (incompat & kMmp) != 0;
  superblock.mmp_interval_s = superblock.has_mmp ? little_endian<std::uint16_t>(raw + kMmpInterval) : 0;
  superblock.mounts = std::uint64_t{little_endian<std::uint32_t>(raw + kMountTime)} << 16 |
                      little_endian<std::uint16_t>(raw + kMountCount);
  check_damage(raw, superblock);
  return true;
}

Result<> read_mmp(const DirectReader& device, const std::vector<std::uint8_t>& start,
                  Superblock& superblock) {
  const std::uint8_t* raw = superblock_in(start);
  if (raw == nullptr || !superblock.has_mmp) return {};
  const auto block_number = little_endian<std::uint64_t>(raw + kMmpBlock);
  if (block_number >= device.size() / block_size_of(raw)) return {};
  const auto block = device.read(block_number * block_size_of(raw), 512);
  if (!block) return fail_with(block.error(), "reading the MMP block");
  if (block->size() < 512 || little_endian<std::uint32_t>(block->data()) != kMmpMagic) return {};
  superblock.mmp_node = label_text(block->data() + kMmpNode, kMmpNodeBytes);
  const bool is_open = little_endian<std::uint32_t>(block->data() + kMmpSequence) != kMmpClean;
  const bool is_claim = label_text(block->data() + kMmpDevice, kMmpDeviceBytes).starts_with(kMmpClaim);
  superblock.mmp_open = is_open && !is_claim;
  superblock.mmp_claimed = is_open && is_claim;
  const unsigned checked = little_endian<std::uint16_t>(block->data() + kMmpCheckInterval);
  superblock.mmp_interval_s = std::max(superblock.mmp_interval_s, checked);
  return {};
}

}  // namespace spark::mounts
