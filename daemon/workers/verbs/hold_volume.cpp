#include "daemon/workers/verbs/hold_volume.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "daemon/mounts/table.hpp"

namespace spark::workers {

Result<UniqueFd> hold_volume(const std::string& mount_point, bool for_writing) {
  if (mount_point.empty()) return UniqueFd();  // a simulated host
  UniqueFd root(::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat at_root {};
  // Read after the open, so that it contains the opened mount.
  const auto table = mounts::read_mount_table(SystemRoot{});
  if (!table) return table.take_error();
  const mounts::Mount* mount = mounts::mounted_at(*table, mount_point);
  if (mount == nullptr || !root || ::fstat(root.get(), &at_root) != 0 ||
      mount->device_number != at_root.st_dev) {
    return fail(Errc::Unavailable, "the volume is not mounted at " + printable(mount_point),
                "`spark-stage status` shows the volume");
  }
  if (for_writing && mounts::is_read_only(*mount)) {
    return fail(Errc::Unavailable, "the volume at " + printable(mount_point) + " is mounted read-only",
                "`spark-stage status` says why");
  }
  return root;
}

}  // namespace spark::workers
