#include "daemon/workers/verbs/hold_volume.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/access/named_path.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/verbs/as_user.hpp"

namespace spark::workers {

bool is_checked_mount(const mounts::Mount* mount, const UniqueFd& root, const json::object& request) {
  struct stat at_root {};
  struct statx its {};
  if (mount == nullptr || !root || ::fstat(root.get(), &at_root) != 0 ||
      mount->device_number != at_root.st_dev)
    return false;
  // Of the descriptor: in a mount namespace of its own, this worker's table has other numbers.
  const auto wanted = member_of<mounts::MountNumbers>(request, "mounted").value_or(mounts::MountNumbers{});
  if (wanted.id != 0 && (::statx(root.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &its) != 0 ||
                         its.stx_mnt_id != static_cast<std::uint64_t>(wanted.id)))
    return false;
  return wanted.device == 0 || mounts::is_mount(*mount, {0, wanted.device});
}

Result<UniqueFd> hold_volume(const json::object& request, bool for_writing) {
  const std::string mount_point = get_text(request, "mount");
  if (mount_point.empty()) return UniqueFd();  // a simulated host
  UniqueFd root(::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Read after the open, so that it contains the opened mount.
  const auto table = mounts::read_mount_table(SystemRoot{});
  if (!table) return table.take_error();
  const mounts::Mount* mount = mounts::mounted_at(*table, mount_point);
  if (!is_checked_mount(mount, root, request)) {
    return fail(Errc::Unavailable, "the volume is not mounted at " + printable(mount_point),
                "`spark-stage status` shows the volume");
  }
  if (for_writing && mounts::is_read_only(*mount)) {
    return fail(Errc::Unavailable, "the volume at " + printable(mount_point) + " is mounted read-only",
                "`spark-stage status` says why");
  }
  return root;
}

Result<uid_t> user_of(const json::object& request, const std::filesystem::path& path,
                      const UniqueFd& volume) {
  if (const auto uid = get_int(request, "uid")) return static_cast<uid_t>(*uid);
  struct stat at_root {};
  std::optional<Within> within;
  if (volume && ::fstat(volume.get(), &at_root) == 0)
    within = Within{get_text(request, "mount"), at_root.st_dev};
  auto named = open_named(path, Links::LastIsItself, within);
  if (named) return named->info.st_uid;
  if (named.error().kind == Errc::NotFound) return ::geteuid();
  return named.take_error();
}

Result<OpenedFolder> open_destination(const json::object& request, const std::filesystem::path& folder) {
  auto volume = hold_volume(request, true);
  if (!volume) return volume.take_error();
  if (auto user = become_user(static_cast<uid_t>(get_int(request, "uid").value_or(0))); !user)
    return user.take_error();
  auto made = staging::make_destination_folder(get_text(request, "root"), folder.native());
  if (!made) return made.take_error();
  return OpenedFolder{std::move(*volume), std::move(*made)};
}

}  // namespace spark::workers
