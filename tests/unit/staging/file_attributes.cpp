#include "tests/unit/staging/file_attributes.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace spark::staging::test {

FileAttributes& file_attributes() {
  static FileAttributes attributes;
  return attributes;
}

}  // namespace spark::staging::test

using spark::staging::test::file_attributes;

// Replace the C library's functions in this program.
extern "C" int fstat(int fd, struct stat* info) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH));
  if (failed == 0 && file_attributes().on_fstat) file_attributes().on_fstat(*info);
  return failed;
}

extern "C" int statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_statx, folder, path, flags, mask, info));
  if (failed == 0 && file_attributes().on_statx) file_attributes().on_statx(folder, path, flags, *info);
  return failed;
}
