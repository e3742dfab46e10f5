#include "staging/files/space.hpp"

#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/text.hpp"

namespace spark::staging {

namespace {

// Since Linux 6.9, for every file system that has one.
struct FsUuid {
  std::uint8_t length;
  std::uint8_t bytes[16];
};
constexpr unsigned long kGetFsUuid = _IOR(0x15, 0, FsUuid);

std::string text_of(const FsUuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", unsigned{uuid.bytes[i]});
    text += two;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// As udev names the device.
std::string uuid_of_device(dev_t device) {
  std::error_code error;
  std::filesystem::directory_iterator links("/dev/disk/by-uuid", error);
  for (; !error && links != std::filesystem::directory_iterator(); links.increment(error)) {
    struct stat info {};
    if (::stat(links->path().c_str(), &info) == 0 && S_ISBLK(info.st_mode) && info.st_rdev == device)
      return links->path().filename();
  }
  return "";
}

}  // namespace

std::string file_system_of(int fd) {
  FsUuid uuid{};
  if (::ioctl(fd, kGetFsUuid, &uuid) == 0 && uuid.length == sizeof uuid.bytes) return "uuid:" + text_of(uuid);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return "";
  if (const std::string named = uuid_of_device(info.st_dev); !named.empty()) return "uuid:" + named;
  // On xfs it is the number of the device, which another start of the host may give to another one.
  struct statfs system {};
  std::uint64_t id = 0;
  if (::fstatfs(fd, &system) != 0) return "";
  std::memcpy(&id, &system.f_fsid, sizeof id);
  if (id == 0 || static_cast<std::uint32_t>(system.f_type) == XFS_SUPER_MAGIC) return "";
  char text[64];
  std::snprintf(text, sizeof text, "fsid:%x-%016llx", static_cast<unsigned>(system.f_type),
                static_cast<unsigned long long>(id));
  return text;
}

Result<Space> space_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return fail_errno(errno, "asking for the free space of " + printable(folder.native()));
  }
  Space space;
  space.total = static_cast<Bytes>(info.f_blocks) * info.f_frsize;
  space.free = static_cast<Bytes>(info.f_bavail) * info.f_frsize;
  const bool is_fixed = info.f_files != 0;  // btrfs and similar create inodes on demand
  space.inodes_total = is_fixed ? info.f_files : std::numeric_limits<std::uint64_t>::max();
  space.inodes_free = is_fixed ? info.f_favail : std::numeric_limits<std::uint64_t>::max();
  return space;
}

Bytes block_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  return ::statvfs(folder.c_str(), &info) == 0 ? std::max<Bytes>(kSmallestBlock, info.f_frsize)
                                               : kSmallestBlock;
}

Footprint footprint_of(const Entries& entries, Bytes block) {
  Footprint sum;
  for (const Entry& entry : entries) sum.add(entry, block);
  return sum;
}

}  // namespace spark::staging
