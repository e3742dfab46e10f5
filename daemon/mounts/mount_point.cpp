#include "daemon/mounts/mount_point.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;

std::string mount_point_name(const fs::path& target) {
  return "mount point " + printable(target.native());
}

// mkdir -p with mode 0755, independent of the umask.
Result<> make_folders(const fs::path& target) {
  fs::path made;
  for (const fs::path& part : target) {
    made /= part;
    if (::mkdir(made.c_str(), 0755) == 0) {
      ::chmod(made.c_str(), 0755);
    } else if (errno != EEXIST) {
      return fail_errno(errno, "making the mount point " + printable(made.native()));
    }
  }
  return {};
}

}  // namespace

Result<> make_mount_point(const fs::path& target) {
  const std::string name = mount_point_name(target);
  if (!target.is_absolute()) return fail(Errc::Invalid, name + " is not an absolute path");
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) {
    const auto made = make_folders(target);
    if (!made) return made;
  } else if (fs::is_symlink(status)) {
    return fail(Errc::Refused, name + " is a symbolic link", "name the folder itself in the config");
  } else if (!fs::is_directory(status)) {
    return fail(Errc::Refused, name + " is not a folder", "name another one, or remove it");
  }
  const fs::path real = fs::canonical(target, error);
  if (error) return fail_errno(error.value(), "looking at " + name);
  if (real != target) {
    return fail(Errc::Refused,
                name + " lies behind a symbolic link; it really is " + printable(real.native()),
                "write that in the config");
  }
  return {};
}

Result<> check_empty(const fs::path& target) {
  const std::string name = mount_point_name(target);
  std::error_code error;
  const fs::directory_iterator first(target, error);
  if (error) return fail_errno(error.value(), "looking into " + name);
  if (first != fs::directory_iterator()) {
    return fail(Errc::Refused,
                name + " is not empty; it holds '" + printable(first->path().filename().native()) + "'",
                "a mount would hide what is there: move it away, or name another folder");
  }
  return {};
}

}  // namespace spark::mounts
