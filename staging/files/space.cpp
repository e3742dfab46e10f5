#include "staging/files/space.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/manifest/file_system_type.hpp"

namespace spark::staging {

namespace {

// Since Linux 6.9, for every file system that has one.
struct FsUuid {
  std::uint8_t length;
  std::uint8_t bytes[16];
};
constexpr unsigned long kGetFsUuid = _IOR(0x15, 0, FsUuid);

// All zero: none.
std::string text_of(const FsUuid& uuid) {
  if (std::ranges::all_of(uuid.bytes, [](std::uint8_t byte) { return byte == 0; })) return "";
  return format_uuid(std::as_bytes(std::span(uuid.bytes)));
}

// As udev names the device.
std::string uuid_of_device(dev_t device) {
  for (const std::filesystem::path& link : list_folder("/dev/disk/by-uuid")) {
    struct stat info {};
    if (::stat(link.c_str(), &info) == 0 && S_ISBLK(info.st_mode) && info.st_rdev == device)
      return link.filename();
  }
  return "";
}

// Some file systems (xfs, squashfs, vfat) put the number of their device there, which another start of the
// host may give to another one.
std::string fsid_of(int fd, dev_t device) {
  struct statfs system {};
  std::uint64_t id = 0;
  if (::fstatfs(fd, &system) != 0) return "";
  std::memcpy(&id, &system.f_fsid, sizeof id);
  const std::uint64_t low = ::minor(device);
  if (id == 0 ||
      id == ((low & 0xff) | std::uint64_t{::major(device)} << 8 | (low & ~std::uint64_t{0xff}) << 12))
    return "";
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return text;
}

// Of the mount's line in mountinfo.
struct Mounted {
  std::string type, source;
};

// 0: unknown, as before Linux 5.8.
std::uint64_t mount_of(int folder, const char* path) {
  struct statx info {};
  const bool is_known = ::statx(folder, path, AT_EMPTY_PATH, STATX_MNT_ID, &info) == 0;
  return is_known && (info.stx_mask & STATX_MNT_ID) != 0 ? info.stx_mnt_id : 0;
}

Mounted mounted_at(int fd, const std::string& mountinfo) {
  const std::uint64_t mount = mount_of(fd, "");
  if (mount == 0) return {};
  const std::string begin = std::to_string(mount) + " ";
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::size_t rest = line.find(" - ");
    if (!line.starts_with(begin) || rest == std::string::npos) continue;
    const auto words = split(line.substr(rest + 3), ' ');
    return words.size() < 2 ? Mounted{} : Mounted{words[0], words[1]};
  }
  return {};
}

}  // namespace

std::string file_system_named(const std::string& type, const std::string& source,
                              const std::function<std::string()>& identity) {
  // A file system in memory gets a new identity at each boot; the cluster of a ceph has one.
  constexpr std::array kOfMemory = {"tmpfs", "ramfs", "rootfs"};
  const std::string kind = type == "nfs4" ? "nfs" : type == "ext2" || type == "ext3" ? "ext4" : type;
  if (std::ranges::count(kOfMemory, kind) > 0 || (is_of_network(kind) && kind != "ceph"))
    return kind + " from:" + source;
  const std::string own = identity();
  return own.empty() ? kind : kind + " " + own;
}

std::string file_system_of(int fd) {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  const Mounted mounted = mountinfo ? mounted_at(fd, *mountinfo) : Mounted{};
  if (mounted.type.empty()) return "";
  return file_system_named(mounted.type, mounted.source, [&]() -> std::string {
    FsUuid uuid{};
    struct stat info {};
    if (::ioctl(fd, kGetFsUuid, &uuid) == 0 && uuid.length == sizeof uuid.bytes && !text_of(uuid).empty())
      return "uuid:" + text_of(uuid);
    if (::fstat(fd, &info) != 0) return "";
    if (const std::string named = uuid_of_device(info.st_dev); !named.empty()) return "uuid:" + named;
    const std::string id = fsid_of(fd, info.st_dev);
    return id.empty() ? "" : "fsid:" + id;
  });
}

bool is_still_mounted(int folder, const std::filesystem::path& path) {
  return mount_of(folder, "") == mount_of(AT_FDCWD, path.c_str());
}

Result<Space> space_of(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return fail_errno(errno, "asking for the free space of " + shown_path(folder));
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
