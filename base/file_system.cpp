#include "base/file_system.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

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

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string device_text(dev_t device) {
  return std::to_string(::major(device)) + ":" + std::to_string(::minor(device));
}

std::filesystem::path held_path(const UniqueFd& folder) {
  return std::string(kHeldPrefix) + std::to_string(folder.get());
}

std::filesystem::path present_path(const std::filesystem::path& path) {
  const std::string_view text = path.native();
  if (!text.starts_with(kHeldPrefix)) return path;
  const std::size_t end = text.find('/', kHeldPrefix.size());
  std::error_code error;
  std::filesystem::path name = std::filesystem::read_symlink(text.substr(0, end), error);
  if (error) return path;
  if (end != text.npos) name /= text.substr(end + 1);
  return name;
}

std::string shown_path(const std::filesystem::path& path) {
  return printable(present_path(path).native());
}

}  // namespace spark
