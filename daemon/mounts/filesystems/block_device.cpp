#include "daemon/mounts/filesystems/block_device.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {

Result<dev_t> device_number_of(const std::string& device) {
  struct stat status {};
  if (::stat(device.c_str(), &status) != 0) return fail_errno(errno, "looking at " + printable(device));
  if (!S_ISBLK(status.st_mode)) return fail(Errc::Invalid, printable(device) + " is not a block device");
  return status.st_rdev;
}

Result<> set_device_read_only(const std::string& device, bool read_only) {
  const std::string doing =
      std::string("setting ") + printable(device) + (read_only ? " read-only" : " writable");
  const UniqueFd fd(::open(device.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, doing);
  const int wanted = read_only ? 1 : 0;
  int is_read_only = -1;
  if (::ioctl(fd.get(), BLKROSET, &wanted) != 0) return fail_errno(errno, doing);
  if (::ioctl(fd.get(), BLKROGET, &is_read_only) != 0) return fail_errno(errno, doing);
  if ((is_read_only != 0) == read_only) return {};
  return fail(Errc::Denied, doing + ": the target has write-protected it", "check the target's export");
}

}  // namespace spark::mounts
