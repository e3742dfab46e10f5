#include "staging/copy/partial/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::staging {
// Opening the folder has an NFS client ask the server for its changes; a path may lead to what this host
// remembers.
bool still_has_name(const UniqueFd& fd, const std::filesystem::path& file) {
  const UniqueFd folder(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat opened {
  }, named{};
  return folder && ::fstat(fd.get(), &opened) == 0 &&
         ::fstatat(folder.get(), file.filename().c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         is_same_file(opened, named);
}

Result<UniqueFd> lock_file(const std::filesystem::path& file, Holders holders) {
  const std::string shown = shown_path(file);
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd && (errno == ENOENT || errno == ESTALE)) return UniqueFd();
  if (!fd) return fail_errno(errno, "opening " + shown);
  if (::flock(fd.get(), (holders == Holders::One ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == ESTALE) return UniqueFd();
    return fail_errno(errno, "locking " + shown,
                      errno == ENOLCK ? "use an NFS server and a version of NFS that have locks" : "");
  }
  return still_has_name(fd, file) ? std::move(fd) : UniqueFd();
}

}  // namespace spark::staging
