#include "daemon/mounts/shutdown.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"

namespace spark::mounts {
namespace {

// The same number for ext4 and xfs; Debian's kernel headers have neither's name.
constexpr unsigned long kShutDown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kWithoutFlush = 2;

constexpr int kMostCovers = 16;

// An xfs that shut itself down, as one does whose log can't be written, opens nothing, and refuses even to
// tell what it has in memory. So its state is known without a call that would need an open folder.
bool is_shut_down_xfs(const std::filesystem::path& target) {
  const UniqueFd fd(::open(target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  return fd && ::fstat(fd.get(), &status) != 0 && errno == EIO;
}

// The path leads to the device, as the mount table shows. Refused if it leads to another file system by now.
Result<> shut_down_at(const std::filesystem::path& target, dev_t device, const std::string& doing) {
  const UniqueFd fd(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    const int number = errno;
    if (number == EIO && is_shut_down_xfs(target)) return {};
    return fail_errno(number, doing);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, doing);
  if (status.st_dev != device) return fail(Errc::Refused, doing + ": another file system is mounted there");
  std::uint32_t how = kWithoutFlush;
  if (::ioctl(fd.get(), kShutDown, &how) == 0) return {};
  return fail_errno(errno, doing);
}

// The mount that keeps the path from leading to the device's; empty means that none does.
Result<std::filesystem::path> cover_of(const std::filesystem::path& target, dev_t device,
                                       const std::string& doing) {
  const auto table = read_mount_table({}, "thread-self");
  if (!table) return fail_with(table.error(), doing);
  const auto stack = stack_at(*table, target);
  const auto own = std::ranges::find(stack, device, &Mount::device_number);
  if (own == stack.end()) return fail(Errc::Refused, doing + ": the device is not mounted there");
  if (const Mount* over = covering(*table, **own)) return over->target;
  return own == stack.begin() ? std::filesystem::path() : target;
}

// In a mount namespace of this thread's own, in which whatever hides the mount is taken off.
Result<> shut_down_below(const std::filesystem::path& target, dev_t device, const std::string& doing) {
  if (::unshare(CLONE_NEWNS) != 0) return fail_errno(errno, doing + ": making a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return fail_errno(errno, doing + ": making the mount namespace a slave");
  for (int covers = 0; covers < kMostCovers; ++covers) {
    const auto over = cover_of(target, device, doing);
    if (!over) return over.take_error();
    if (over->empty()) return shut_down_at(target, device, doing);
    if (::umount2(over->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
      return fail_errno(errno, doing + ": looking below " + printable(over->native()));
  }
  return fail(Errc::Failed, doing + ": too many mounts hide it");
}

}  // namespace

Result<> shut_down_filesystem(const std::filesystem::path& target, const std::string& device) {
  const std::string doing = "stopping all writes to " + printable(target.native());
  const auto number = device_number_of(device);
  if (!number) return fail_with(number.error(), doing);
  // What hides it is not opened: it may be of a server that is silent.
  const auto over = cover_of(target, *number, doing);
  if (!over) return over.take_error();
  if (over->empty()) return shut_down_at(target, *number, doing);
  Result<> done;
  auto below = start_thread([&] { done = shut_down_below(target, *number, doing); });
  if (below.joinable()) below.join();
  return done;
}

bool shut_down_nfs(const SystemRoot& root, const Mount& mount) {
  const std::string device = device_text(mount.device_number);
  const UniqueFd fd(::open((root / "sys/fs/nfs" / device / "shutdown").c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), "1", 1) == 1;
}

}  // namespace spark::mounts
