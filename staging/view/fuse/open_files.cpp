#include "staging/view/fuse/open_files.hpp"

#include <sys/ioctl.h>

namespace spark::staging {
namespace {

// Linux 6.9, include/uapi/linux/fuse.h; not in Debian 12's header.
struct BackingMap {  // fuse_backing_map
  std::int32_t file;
  std::uint32_t flags;
  std::uint64_t padding;
};
constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);      // FUSE_DEV_IOC_BACKING_OPEN
constexpr unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);  // FUSE_DEV_IOC_BACKING_CLOSE

}  // namespace

Backings backings_of(int device) {
  const auto add = [device](int file) {
    const BackingMap map{file, 0, 0};
    const int number = ::ioctl(device, kBackingOpen, &map);
    return number > 0 ? static_cast<std::uint32_t>(number) : 0U;
  };
  return {add, [device](std::uint32_t number) { ::ioctl(device, kBackingClose, &number); }};
}

// A process that is killed between these steps, or before the kernel got the answer, leaves a count that is
// too high, which keeps the file as it is. A count that is too low would fail the next open.
std::uint32_t OpenFiles::open(NodeNumber file) {
  const std::scoped_lock lock(mutex_of(file));
  ViewMap::Opens& opens = opens_of(file);
  if (opens.count == 0) {
    const auto complete = reader_.complete(file);
    opens.backing = complete ? backings_.add(complete->get()) : 0;
  }
  ++opens.count;
  return opens.backing;
}

void OpenFiles::close(NodeNumber file) {
  const std::scoped_lock lock(mutex_of(file));
  ViewMap::Opens& opens = opens_of(file);
  if (opens.count == 0 || --opens.count > 0) return;
  if (const std::uint32_t number = opens.backing.exchange(0); number != 0) backings_.remove(number);
}

}  // namespace spark::staging
