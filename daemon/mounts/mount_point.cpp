#include "daemon/mounts/mount_point.hpp"

#include <fcntl.h>
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

// One name at a time, through no link: of a user's folder on the way, that user could make one. `makes`: as
// mkdir -p with mode 0755, independent of the umask.
Result<UniqueFd> open_folders(const fs::path& target, bool makes) {
  fs::path made = "/";
  UniqueFd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const fs::path& part : target.relative_path()) {
    if (part.empty()) continue;
    made /= part;
    const bool is_new = makes && ::mkdirat(at.get(), part.c_str(), 0755) == 0;
    if (makes && !is_new && errno != EEXIST)
      return fail_errno(errno, "making the mount point " + printable(made.native()));
    const int how = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (is_new ? O_RDONLY : O_PATH);
    UniqueFd next(::openat(at.get(), part.c_str(), how));
    if (!next && errno == ENOTDIR)
      return fail(
          Errc::Refused,
          mount_point_name(target) + ": " + printable(made.native()) + " is a symbolic link, or no folder",
          "write the real path in the config");
    if (!next) return fail_errno(errno, "opening " + printable(made.native()));
    if (is_new) ::fchmod(next.get(), 0755);
    at = std::move(next);
  }
  return at;
}

}  // namespace

Result<> make_mount_point(const fs::path& target) {
  const std::string name = mount_point_name(target);
  if (!target.is_absolute()) return fail(Errc::Invalid, name + " is not an absolute path");
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) {
    const auto made = open_folders(target, true);
    if (!made) return made.take_error();
  } else if (fs::is_symlink(status)) {
    return fail(Errc::Refused, name + " is a symbolic link", "name the folder itself in the config");
  } else if (!fs::is_directory(status)) {
    return fail(Errc::Refused, name + " is not a folder", "name another one, or remove it");
  }
  const fs::path real = fs::canonical(target, error);
  if (error) return fail_errno(error.value(), "looking at " + name);
  if (real != target) {
    return fail(Errc::Refused,
                name + " is behind a symbolic link; its real path is " + printable(real.native()),
                "write that in the config");
  }
  return {};
}

Result<UniqueFd> open_mount_point(const fs::path& target) {
  return open_folders(target, false);
}

Result<> check_empty(const fs::path& target) {
  const std::string name = mount_point_name(target);
  std::error_code error;
  const fs::directory_iterator first(target, error);
  if (error) return fail_errno(error.value(), "looking into " + name);
  if (first != fs::directory_iterator()) {
    return fail(Errc::Refused,
                name + " is not empty; it holds '" + printable(first->path().filename().native()) + "'",
                "a mount would hide its files: move them away, or name another folder");
  }
  return {};
}

}  // namespace spark::mounts
