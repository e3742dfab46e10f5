#include "daemon/mounts/shutdown.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"

namespace spark::mounts {
namespace {

// The same number for ext4 and xfs; Debian's kernel headers have neither's name.
constexpr unsigned long kShutDown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kWithoutFlush = 2;

}  // namespace

Result<> shut_down_filesystem(const std::filesystem::path& target, const std::string& device) {
  const std::string doing = "stopping all writes to " + printable(target.native());
  const auto number = device_number_of(device);
  if (!number) return fail_with(number.error(), doing);
  const UniqueFd fd(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, doing);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, doing);
  if (status.st_dev != *number) {
    return fail(Errc::Refused, doing + ": it is not " + printable(device) + " that is mounted there");
  }
  std::uint32_t how = kWithoutFlush;
  if (::ioctl(fd.get(), kShutDown, &how) == 0) return {};
  return fail_errno(errno, doing);
}

bool shut_down_nfs(const SystemRoot& root, const Mount& mount) {
  const std::string device =
      std::to_string(major(mount.device_number)) + ":" + std::to_string(minor(mount.device_number));
  const UniqueFd fd(::open((root / "sys/fs/nfs" / device / "shutdown").c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), "1", 1) == 1;
}

}  // namespace spark::mounts
