#include "cli/join/replace_file.hpp"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <string>

#include "base/file.hpp"
#include "base/file_system.hpp"

namespace spark::cli {
namespace {

// The owner first, as a change of it takes bits of the mode away.
Result<> make_like(int fd, const std::filesystem::path& like) {
  constexpr char kAcl[] = "system.posix_acl_access";
  struct stat info {};
  const std::string name = shown_path(like);
  if (::stat(like.c_str(), &info) != 0) return fail_errno(errno, "looking at " + name);
  if (::fchown(fd, info.st_uid, info.st_gid) != 0) return fail_errno(errno, "keeping the owner of " + name);
  if (::fchmod(fd, info.st_mode & 07777) != 0) return fail_errno(errno, "keeping the mode of " + name);
  std::string acl(XATTR_SIZE_MAX, '\0');
  const ssize_t bytes = ::getxattr(like.c_str(), kAcl, acl.data(), acl.size());
  if (bytes < 0 && (errno == ENODATA || errno == ENOTSUP)) return {};
  if (bytes < 0 || ::fsetxattr(fd, kAcl, acl.data(), static_cast<std::size_t>(bytes), 0) != 0)
    return fail_errno(errno, "keeping the ACL of " + name);
  return {};
}

}  // namespace

// The content is written under another name, which then gets the metadata, and at last the file's name.
Result<> replace_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".replacing";
  if (auto written = write_file_atomically(temporary, content, 0600); !written) return written;
  const auto replace = [&]() -> Result<> {
    const UniqueFd fd(::open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "opening " + shown_path(temporary));
    if (auto like = make_like(fd.get(), path); !like) return like;
    if (::fsync(fd.get()) != 0) return fail_errno(errno, "flushing " + shown_path(temporary));
    if (::rename(temporary.c_str(), path.c_str()) == 0) return flush_folder(path.parent_path());
    return fail_errno(errno, "replacing " + shown_path(path));
  };
  auto replaced = replace();
  if (!replaced) ::unlink(temporary.c_str());
  return replaced;
}

}  // namespace spark::cli
