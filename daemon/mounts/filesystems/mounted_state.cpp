#include "daemon/mounts/filesystems/mounted_state.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/ext4.hpp"

namespace spark::mounts {
namespace {

// FS_IOC_GETFSUUID, for all file systems since Linux 6.9, and ext4's own since 6.0; Debian's kernel headers
// have neither.
struct AnyUuid {
  std::uint8_t length;
  std::array<std::uint8_t, 16> bytes;
};
struct Ext4Uuid {
  std::uint32_t length, flags;
  std::array<std::uint8_t, 16> bytes;
};
// XFS_IOC_FSGEOMETRY_V1, of every kernel.
struct XfsGeometry {
  std::array<std::uint32_t, 8> sizes;
  std::array<std::uint64_t, 4> blocks;
  std::array<std::uint8_t, 16> uuid;
  std::array<std::uint32_t, 7> more;
};
constexpr unsigned long kGetXfsGeometry = _IOR('X', 100, XfsGeometry);
constexpr unsigned long kGetAnyUuid = _IOR(0x15, 0, AnyUuid);
constexpr unsigned long kGetExt4Uuid = _IOR('f', 44, std::uint64_t);  // the size excludes the UUID's bytes

// Errors of ext4 and xfs after a shutdown, or for data that differs from the data written: a bad checksum, an
// impossible structure.
bool is_damage(int error) {
  return error == EIO || error == EBADMSG || error == EUCLEAN;
}

// While it exists, this thread may not give files to other groups, even as root.
class WithoutChown {
 public:
  WithoutChown() {
    if (::syscall(SYS_capget, &header_, before_.data()) != 0) return;
    auto without = before_;
    without[0].effective &= ~(1U << CAP_CHOWN);
    if (::syscall(SYS_capset, &header_, without.data()) != 0) return;
    is_dropped_ = ::syscall(SYS_capget, &header_, without.data()) == 0 &&
                  (without[0].effective & (1U << CAP_CHOWN)) == 0;
  }
  ~WithoutChown() { ::syscall(SYS_capset, &header_, before_.data()); }
  WithoutChown(const WithoutChown&) = delete;
  WithoutChown& operator=(const WithoutChown&) = delete;
  bool is_dropped() const { return is_dropped_; }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> before_{};
  bool is_dropped_ = false;
};

// Linux 6.1 still lists and opens the folders of an ext4 that shut down, and reports the shutdown nowhere. It
// only refuses changes, before any other check. So this requests a change that is denied otherwise: it
// affects neither the journal nor the device, for which an fsync would wait.
bool takes_changes(int root, const struct stat& status) {
  constexpr gid_t kForeign = 65533;
  const WithoutChown denied;
  if (!denied.is_dropped()) return true;
  const gid_t other = status.st_gid == kForeign ? kForeign - 1 : kForeign;
  return ::fchown(root, static_cast<uid_t>(-1), other) == 0 || !is_damage(errno);
}

// After an error an ext4 has aborted its journal, unless it is set to continue (errors=continue). Linux 6.1
// reports that only when a change is started, which then fails immediately. Removing an attribute that does
// not exist is a change without an effect. It may have to wait for the journal, so this is called only if
// errors were found.
bool has_journal(int root) {
  constexpr char kNone[] = "trusted.spark-stage.none";
  return ::fremovexattr(root, kNone) == 0 || (errno != EROFS && !is_damage(errno));
}

// Detects a folder that can't be listed any more, under a mount that no program of this host writes to.
Result<bool> gives_names(const UniqueFd& root, const std::string& name) {
  std::error_code error;
  const std::filesystem::directory_iterator first(held_path(root), error);
  if (!error) return true;
  if (is_damage(error.value())) return false;
  return fail_errno(error.value(), "listing " + name);
}

// Of the file system as it is now: `tune2fs -U` on a mounted ext4 changes what ext4's own call says alone.
std::string uuid_of(int root) {
  Ext4Uuid ext4{16, 0, {}};
  if (::ioctl(root, kGetExt4Uuid, &ext4) == 0) return uuid_text(ext4.bytes.data());
  AnyUuid any{};
  if (::ioctl(root, kGetAnyUuid, &any) == 0 && any.length == any.bytes.size())
    return uuid_text(any.bytes.data());
  XfsGeometry xfs{};
  return ::ioctl(root, kGetXfsGeometry, &xfs) == 0 ? uuid_text(xfs.uuid.data()) : "";
}

// ext4 counts errors in memory immediately; on the disk the count may wait in the journal.
std::string damage_of(dev_t device) {
  std::error_code error;
  const auto disk = std::filesystem::read_symlink("/sys/dev/block/" + device_text(device), error).filename();
  if (error) return "";
  const auto text = read_line_file("/sys/fs/ext4" / disk / "errors_count");
  const auto count = text ? std::strtoul(text->c_str(), nullptr, 10) : 0;
  return count == 0 ? "" : recorded_errors("ext4", static_cast<std::uint32_t>(count));
}

}  // namespace

Result<MountedState> read_mounted_state(const std::filesystem::path& target) {
  const std::string name = printable(target.native());
  MountedState state;
  struct stat status {};
  const bool is_file = ::stat(target.c_str(), &status) == 0 && S_ISREG(status.st_mode);  // a bind mount of it
  const UniqueFd root(::open(target.c_str(), O_RDONLY | O_CLOEXEC | (is_file ? 0 : O_DIRECTORY)));
  if (!root && is_damage(errno)) {  // xfs
    state.is_shut_down = true;
    return state;
  }
  struct statvfs space {};
  if (!root || ::fstat(root.get(), &status) != 0 || ::fstatvfs(root.get(), &space) != 0)
    return fail_errno(errno, "looking at " + name);
  state.uuid = uuid_of(root.get());
  state.damage = damage_of(status.st_dev);
  if ((space.f_flag & ST_RDONLY) == 0) {
    state.is_shut_down =
        !takes_changes(root.get(), status) || (!state.damage.empty() && !has_journal(root.get()));
  } else if (!is_file) {
    const auto gives = gives_names(root, name);
    if (!gives) return gives.take_error();
    state.is_shut_down = !*gives;
  }
  if (const auto published = read_published(target)) state.published = *published;
  state.is_written_since = is_writer_announced(target).value_or(true);
  return state;
}

}  // namespace spark::mounts
