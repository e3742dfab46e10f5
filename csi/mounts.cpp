#include "csi/mounts.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/access/named_path.hpp"
#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"

namespace spark::csi {
namespace {

constexpr mode_t kFolderMode = 0750;
constexpr int kMostMounts = 16;  // limit for mounts stacked on one mount point

Place place_of(const mounts::Mount& mount) {
  const auto has = [&](const char* option) { return mounts::has_option(mount.options, option); };
  if (!has("nosuid") || !has("nodev")) return Place::Something;
  return has("ro") ? Place::Copy : Place::Output;
}

// The form in mountinfo: symbolic links in the parent folders are resolved, the last name is not.
Result<std::filesystem::path> resolved(const std::filesystem::path& target) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(target.parent_path(), error);
  if (error) return fail_errno(error.value(), "looking for " + printable(target.parent_path().native()));
  return folder / target.filename();
}

Result<> make_folder(const std::filesystem::path& target) {
  if (::mkdir(target.c_str(), kFolderMode) == 0 || errno == EEXIST) return {};
  return fail_errno(errno, "making the folder " + printable(target.native()));
}

// The tree is not attached yet, so no program sees it before its options are set.
Result<UniqueFd> tree_of(const std::filesystem::path& folder, Access access) {
  const std::string doing = "mounting " + printable(folder.native()) + " for a pod";
  auto named = open_named(folder, Links::OfRootAlone);
  if (!named) {
    if (named.error().kind == Errc::NotFound)
      named.error().hint = "does it exist, and does the driver see it under the daemon's path?";
    return fail_with(std::move(named.error()), doing);
  }
  UniqueFd tree(::open_tree(named->fd.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!tree) return fail_errno(errno, doing);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (access == Access::ReadOnly) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  attributes.propagation = MS_PRIVATE;
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0) return tree;
  if (errno == ENOSYS)
    return fail(Errc::Unsupported, doing + ": this kernel has no mount_setattr",
                "Linux 5.12 or newer is needed");
  return fail_errno(errno, doing + ", with its options");
}

}  // namespace

Result<Place> KernelMounter::look_at(const std::filesystem::path& target) {
  const auto table = mounts::read_mount_table(root_);
  if (!table) return table.take_error();
  const auto place = resolved(target);
  if (!place && place.error().kind == Errc::NotFound) return Place::Empty;
  if (!place) return place.take_error();
  const mounts::Mount* mount = mounts::mounted_at(*table, *place);
  return mount == nullptr ? Place::Empty : place_of(*mount);
}

Result<> KernelMounter::mount(const std::filesystem::path& folder, const std::filesystem::path& target,
                              Access access) {
  const auto tree = tree_of(folder, access);
  if (!tree) return tree.take_error();
  if (auto made = make_folder(target); !made) return made;
  if (::move_mount(tree->get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0) return {};
  return fail_errno(errno, "mounting " + printable(folder.native()) + " at " + printable(target.native()));
}

bool KernelMounter::is_same(const std::filesystem::path& folder, const std::filesystem::path& target) {
  struct stat one {
  }, other{};
  return ::stat(folder.c_str(), &one) == 0 && ::stat(target.c_str(), &other) == 0 && is_same_file(one, other);
}

Result<> KernelMounter::unmount(const std::filesystem::path& target) {
  const std::string doing = "unmounting " + printable(target.native());
  for (int left = kMostMounts; left > 0; --left) {
    const auto place = look_at(target);
    if (!place) return place.take_error();
    if (*place == Place::Empty) break;
    if (::umount2(target.c_str(), UMOUNT_NOFOLLOW) == 0) continue;
    // A process outside the pod has a file open there. It keeps access; the pod's folder can be removed.
    const bool is_busy = errno == EBUSY;
    if (is_busy && ::umount2(target.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) continue;
    if (errno != EINVAL && errno != ENOENT) return fail_errno(errno, doing);
  }
  // A non-empty folder does not belong to this driver; kubelet reports it.
  const bool removed =
      ::rmdir(target.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == ENOTDIR;
  if (!removed) return fail_errno(errno, "removing the folder " + printable(target.native()));
  return {};
}

Result<Usage> KernelMounter::usage(const std::filesystem::path& target) {
  struct statvfs info {};
  if (::statvfs(target.c_str(), &info) != 0)
    return fail_errno(errno, "asking for the space at " + printable(target.native()));
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto block = number(info.f_frsize);
  return Usage{.bytes = number(info.f_blocks) * block,
               .free_bytes = number(info.f_bavail) * block,
               .used_bytes = number(info.f_blocks - info.f_bfree) * block,
               .inodes = number(info.f_files),
               .free_inodes = number(info.f_ffree),
               .used_inodes = number(info.f_files - info.f_ffree)};
}

}  // namespace spark::csi
