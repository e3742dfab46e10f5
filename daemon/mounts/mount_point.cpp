#include "daemon/mounts/mount_point.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <memory>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// What ext4 and xfs say once they have shut down, or when what they read is not what they wrote: a bad
// checksum, a structure that can't be.
bool is_damage(int error) {
  return error == EIO || error == EBADMSG || error == EUCLEAN;
}

// mkdir -p, mode 0755 whatever the umask is.
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

Result<> prepare_mount_point(const fs::path& target) {
  const std::string name = "mount point " + printable(target.native());
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
  const fs::directory_iterator first(target, error);
  if (error) return fail_errno(error.value(), "looking into " + name);
  if (first != fs::directory_iterator()) {
    return fail(Errc::Refused,
                name + " is not empty; it holds '" + printable(first->path().filename().native()) + "'",
                "a mount would hide what is there: move it away, or name another folder");
  }
  return {};
}

Result<bool> gives_names(const fs::path& target) {
  UniqueFd root(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_NOATIME | O_CLOEXEC));
  if (!root && is_damage(errno)) return false;
  if (!root) return fail_errno(errno, "opening " + printable(target.native()));
  const std::unique_ptr<DIR, CloseDir> folder(::fdopendir(root.get()));
  if (!folder) return fail_errno(errno, "listing " + printable(target.native()));
  root.release();
  // Linux 6.1 lists the folders of an ext4 that shut down, and refuses it only what would write.
  struct statvfs space {};
  const bool is_writable = ::fstatvfs(::dirfd(folder.get()), &space) == 0 && (space.f_flag & ST_RDONLY) == 0;
  if (is_writable && ::fsync(::dirfd(folder.get())) != 0 && is_damage(errno)) return false;
  errno = 0;
  if (::readdir(folder.get()) != nullptr || errno == 0) return true;
  if (is_damage(errno)) return false;
  return fail_errno(errno, "listing " + printable(target.native()));
}

}  // namespace spark::mounts
