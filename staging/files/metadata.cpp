#include "staging/files/metadata.hpp"

#include <fcntl.h>
#include <linux/posix_acl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace spark::staging {
namespace {

constexpr char kAccessAcl[] = "system.posix_acl_access", kDefaultAcl[] = "system.posix_acl_default";

// Root sets the owner; other users set the group if it is one of theirs, and EPERM is then no failure.
bool put_owner(int fd, const Entry& entry) {
  if (::geteuid() == 0) return ::fchown(fd, entry.uid, entry.gid) == 0;
  return ::fchown(fd, static_cast<uid_t>(-1), entry.gid) == 0 || errno == EPERM;
}

bool is_user_attribute(std::string_view name) {
  return name.starts_with("user.");
}

bool is_acl(std::string_view name) {
  return name == kAccessAcl || name == kDefaultAcl;
}

Result<std::vector<std::string>> list_attributes(int fd) {
  std::string names(4096, '\0');
  ssize_t length = ::flistxattr(fd, names.data(), names.size());
  if (length < 0 && errno == ERANGE) {
    names.resize(XATTR_LIST_MAX);
    length = ::flistxattr(fd, names.data(), names.size());
  }
  std::vector<std::string> kept;
  if (length < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    return fail_errno(errno, "listing the attributes");
  for (ssize_t at = 0; at < length;) {
    const std::string name = names.data() + at;
    if (is_user_attribute(name) || is_acl(name)) kept.push_back(name);
    at += static_cast<ssize_t>(name.size()) + 1;
  }
  return kept;
}

// Whether the copy's file system can't hold such an attribute. ext4 has room for 4 KiB of them, and reports a
// larger one like a full drive.
bool is_not_taken(int number, int fd) {
  struct statvfs space {};
  if (number == ENOSPC)  // btrfs counts no inodes
    return ::fstatvfs(fd, &space) == 0 && space.f_bavail > 0 && (space.f_files == 0 || space.f_favail > 0);
  return number == EOPNOTSUPP || number == EPERM || number == E2BIG || number == ERANGE;
}

tl::unexpected<Error> of_source(tl::unexpected<Error> error, const ShownFiles& shown) {
  error.value().is_of_source = shown.is_of_source;
  return error;
}

Result<Kept> copy_attribute(int fd, int source_fd, const std::string& name, const ShownFiles& shown) {
  std::string value(XATTR_SIZE_MAX, '\0');
  const ssize_t length = ::fgetxattr(source_fd, name.c_str(), value.data(), value.size());
  if (length < 0 && errno == ENODATA) return Kept::All;  // removed since it was listed
  if (length < 0)
    return of_source(fail_errno(errno, "reading attribute " + name + " of " + shown.source), shown);
  if (::fsetxattr(fd, name.c_str(), value.data(), static_cast<std::size_t>(length), 0) == 0) return Kept::All;
  if (is_not_taken(errno, fd)) return Kept::WithoutAttributes;
  return fail_errno(errno, "setting attribute " + name + " of " + shown.copy);
}

Result<Kept> copy_attributes(int fd, int source_fd, const std::vector<std::string>& names,
                             bool (*is_wanted)(std::string_view), const ShownFiles& shown) {
  Kept all = Kept::All;
  for (const std::string& name : names) {
    if (!is_wanted(name)) continue;
    auto kept = copy_attribute(fd, source_fd, name, shown);
    if (!kept) return kept;
    if (*kept != Kept::All) all = *kept;
  }
  return all;
}

// The bits of the mode that give nobody more than the ACL of the source does: with an ACL, those of the group
// are its mask, and users that it names may have less than their group, or than all others.
std::uint32_t mode_without_acl(int source_fd, std::uint32_t mode) {
  struct AclEntry {
    std::uint16_t tag, bits;
    std::uint32_t id;
  };
  constexpr std::size_t kHeader = 4;
  std::string acl(XATTR_SIZE_MAX, '\0');
  const ssize_t length = ::fgetxattr(source_fd, kAccessAcl, acl.data(), acl.size());
  std::uint32_t group = mode >> 3 & 7, others = mode & 7;
  for (std::size_t at = kHeader; length > 0 && at + sizeof(AclEntry) <= static_cast<std::size_t>(length);
       at += sizeof(AclEntry)) {
    AclEntry entry{};
    std::memcpy(&entry, acl.data() + at, sizeof entry);
    const bool is_named = entry.tag == ACL_USER || entry.tag == ACL_GROUP;
    if (entry.tag == ACL_USER || entry.tag == ACL_GROUP_OBJ) group &= entry.bits;
    if (is_named) others &= entry.bits;
  }
  return (mode & ~std::uint32_t{077}) | group << 3 | others;
}

}  // namespace

std::array<timespec, 2> times_of(const Entry& entry) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = entry.mtime_ns / kSecond, rest = entry.mtime_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return {timespec{0, UTIME_OMIT}, timespec{seconds, rest}};
}

std::uint32_t kept_mode(const Entry& entry) {
  if (::geteuid() == 0 || entry.type == EntryType::Folder) return entry.mode;
  return entry.mode & 01777;
}

Result<Kept> put_metadata(int fd, int source_fd, const Entry& entry, const ShownFiles& shown) {
  // The order matters: a change of owner clears mode bits, user attributes need the owner's write permission,
  // permissions change ACLs, and the times must be last.
  const auto names = list_attributes(source_fd);
  if (!names) return of_source(fail_with(names.error(), "reading " + shown.source), shown);
  if (!put_owner(fd, entry)) return fail_errno(errno, "setting the owner of " + shown.copy);
  auto users = copy_attributes(fd, source_fd, *names, is_user_attribute, shown);
  if (!users) return users;
  // Without its ACL, if that can't be set, the file is open to nobody else.
  const bool has_acl = std::ranges::find(*names, kAccessAcl) != names->end();
  const std::uint32_t mode = kept_mode(entry);
  if (::fchmod(fd, has_acl ? mode_without_acl(source_fd, mode) : mode) != 0)
    return fail_errno(errno, "setting the permissions of " + shown.copy);
  auto acls = copy_attributes(fd, source_fd, *names, is_acl, shown);
  if (!acls) return acls;
  if (::futimens(fd, times_of(entry).data()) != 0)
    return fail_errno(errno, "setting the times of " + shown.copy);
  return *users == Kept::All ? *acls : *users;
}

Result<bool> has_kept_attributes(int fd) {
  char one[1];  // usually there are none
  if (::flistxattr(fd, one, sizeof one) == 0) return false;
  const auto names = list_attributes(fd);
  if (!names) return names.take_error();
  return !names->empty();
}

bool has_acl(int fd) {
  return ::fgetxattr(fd, kAccessAcl, nullptr, 0) >= 0;
}

Result<bool> has_same_attributes(int fd, int other_fd) {
  auto names = list_attributes(fd), others = list_attributes(other_fd);
  if (!names) return names.take_error();
  if (!others) return others.take_error();
  std::ranges::sort(*names);
  std::ranges::sort(*others);
  if (*names != *others) return false;
  for (const std::string& name : *names) {
    std::string value(XATTR_SIZE_MAX, '\0'), other = value;
    const ssize_t length = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
    const ssize_t other_length = ::fgetxattr(other_fd, name.c_str(), other.data(), other.size());
    if (length < 0 || length != other_length || value != other) return false;
  }
  return true;
}

Result<> put_plain_metadata(int fd, const Entry& entry, const std::string& shown) {
  const bool is_owner = entry.uid == ::geteuid() && entry.gid == ::getegid();
  if (!is_owner && !put_owner(fd, entry)) return fail_errno(errno, "setting the owner of " + shown);
  if (::fchmod(fd, kept_mode(entry)) != 0) return fail_errno(errno, "setting the permissions of " + shown);
  if (::futimens(fd, times_of(entry).data()) != 0) return fail_errno(errno, "setting the times of " + shown);
  return {};
}

Result<> put_symlink_metadata(int folder, const std::string& name, const Entry& entry,
                              const std::string& shown) {
  if (::geteuid() == 0 && ::fchownat(folder, name.c_str(), entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(errno, "setting the owner of " + shown);
  }
  if (::utimensat(folder, name.c_str(), times_of(entry).data(), AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(errno, "setting the times of " + shown);
  }
  return {};
}

void drop_inherited_acl(int folder) {
  ::fremovexattr(folder, kDefaultAcl);
  ::fremovexattr(folder, kAccessAcl);
}

}  // namespace spark::staging
