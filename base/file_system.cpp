#include "base/file_system.hpp"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark {

Result<> flush_file_system(const std::filesystem::path& path) {
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (opened && ::syncfs(opened.get()) == 0) return {};
  return fail_errno(errno, "flushing the file system of " + printable(path.native()));
}

bool is_device_claimed(const std::filesystem::path& device) {
  constexpr int kLooks = 4;  // other programs claim a device briefly, to examine it
  for (int look = 0; look < kLooks; ++look) {
    const UniqueFd fd(::open(device.c_str(), O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC));
    if (fd || errno != EBUSY) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace spark
