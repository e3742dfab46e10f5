#include "daemon/mounts/served_copies.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/access/locks.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/hidden_mount.hpp"

namespace spark::mounts {
namespace {

constexpr int kMostStacked = 16;  // limit on stacked mounts to remove
constexpr std::chrono::milliseconds kPatience{10'000};

// Asks the folder itself: a line of the mount table may be hidden by a later mount above it. Without an
// answer of the drive, a worker that took it for writable would mark copies as evicted and could move none.
Result<bool> is_served_read_only(const std::filesystem::path& folder, const std::string& doing) {
  struct statx info {};
  struct statvfs system {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &info) != 0 ||
      ::statvfs(folder.c_str(), &system) != 0)
    return errno == ENOENT ? Result<bool>(false) : fail_errno(errno, doing);
  return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && (system.f_flag & ST_RDONLY) != 0;
}

mount_attr attributes_for(const std::vector<std::string>& options) {
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_RDONLY;
  const auto allow = [&](const char* option, std::uint64_t attribute) {
    const bool is_allowed = std::ranges::find(options, option) != options.end();
    (is_allowed ? wanted.attr_clr : wanted.attr_set) |= attribute;
  };
  allow("suid", MOUNT_ATTR_NOSUID);
  allow("dev", MOUNT_ATTR_NODEV);
  return wanted;
}

// By an earlier version, or before the configuration changed. Seen only where the mount is, not in containers
// that have a copy of it.
Result<Change> adjust(const std::filesystem::path& folder, mount_attr wanted, const std::string& doing) {
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) != 0) return fail_errno(errno, doing);
  const auto differs = [&](unsigned long flag, std::uint64_t attribute) {
    return ((system.f_flag & flag) != 0) != ((wanted.attr_set & attribute) != 0);
  };
  if (!differs(ST_NOSUID, MOUNT_ATTR_NOSUID) && !differs(ST_NODEV, MOUNT_ATTR_NODEV))
    return Change::AlreadyThere;
  if (::mount_setattr(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, &wanted, sizeof wanted) != 0)
    return fail_errno(errno, doing);
  return Change::Done;
}

// Made read-only before it is visible, so that it is read-only in every namespace that it propagates to.
Result<> mount_read_only(const std::filesystem::path& folder, mount_attr wanted, const std::string& doing) {
  const UniqueFd copy(
      ::open_tree(AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW));
  if (!copy) return fail_errno(errno, doing);
  wanted.propagation = MS_PRIVATE;
  if (::mount_setattr(copy.get(), "", AT_EMPTY_PATH, &wanted, sizeof wanted) != 0)
    return fail_errno(errno, doing);
  if (::move_mount(copy.get(), "", AT_FDCWD, folder.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail_errno(errno, doing);
  return {};
}

// By the mount table, for a drive that no longer answers.
Result<bool> is_listed_read_only(const std::filesystem::path& folder) {
  std::error_code error;
  const auto parent = std::filesystem::canonical(folder.parent_path(), error);
  const auto table = read_mount_table({});
  if (!table) return table.take_error();
  const Mount* top = mounted_at(*table, error ? folder : parent / folder.filename());
  return top != nullptr && has_option(top->options, "ro");
}

enum class WithoutAnswer { Fails, GoesByTable };

Result<Change> take_off(const std::filesystem::path& folder, const std::string& doing,
                        WithoutAnswer without_answer) {
  Change change = Change::AlreadyThere;
  for (int i = 0; i < kMostStacked; ++i) {
    auto served = is_served_read_only(folder, doing);
    if (!served && served.error().number == EIO && without_answer == WithoutAnswer::GoesByTable)
      served = is_listed_read_only(folder);
    if (!served) return served.take_error();
    if (!*served) break;
    // Detached: a job with an open file there keeps it.
    if (::umount2(folder.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) return fail_errno(errno, doing);
    change = Change::Done;
  }
  return change;
}

}  // namespace

Result<Change> serve_read_only(const std::filesystem::path& folder, const std::vector<std::string>& options,
                               const std::filesystem::path& lock) {
  const std::string doing = "mounting " + printable(folder.native()) + " read-only for jobs";
  // Otherwise two concurrent workers would mount it twice.
  const auto locked = lock_private(lock, kPatience, doing);
  if (!locked) return locked.take_error();
  const mount_attr wanted = attributes_for(options);
  const auto served = is_served_read_only(folder, doing);
  if (!served) return served.take_error();
  if (*served) return adjust(folder, wanted, doing);
  if (!propagates_mounts()) {
    return fail(Errc::Unsupported, doing + ": mounts of this system do not propagate to other namespaces",
                "run `sudo mount --make-rshared /` (systemd does this at boot), then restart spark-staged");
  }
  if (auto mounted = mount_read_only(folder, wanted, doing); !mounted) {
    Error error = std::move(mounted.error());
    if (error.kind != Errc::NotFound) error.kind = Errc::Unsupported;
    return fail(std::move(error));
  }
  return Change::Done;
}

Result<UniqueFd> see_writable(const std::filesystem::path& folder) {
  UniqueFd host(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!host) return fail_errno(errno, "opening /");
  const std::string doing = "working in " + printable(folder.native()) + ", which is read-only for jobs";
  const auto served = is_served_read_only(folder, doing);
  if (!served) return served.take_error();
  if (!*served) return host;
  if (::unshare(CLONE_NEWNS) != 0) return fail_errno(errno, doing + ": making a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return fail_errno(errno, doing + ": making the mount namespace a slave");
  if (auto off = take_off(folder, doing, WithoutAnswer::Fails); !off) return off.take_error();
  return host;
}

Result<Change> stop_serving_read_only(const std::filesystem::path& folder) {
  return take_off(folder, "making " + printable(folder.native()) + " writable again",
                  WithoutAnswer::GoesByTable);
}

void detach_all_on(const std::filesystem::path& folder) {
  for (int i = 0; i < kMostStacked && ::umount2(folder.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0; ++i) {
  }
}

void detach_all_of(std::string_view type) {
  const auto table = read_mount_table(SystemRoot{});
  if (!table) return;
  for (const Mount& mount : *table)
    if (mount.type == type) detach_all_on(mount.target);
}

}  // namespace spark::mounts
