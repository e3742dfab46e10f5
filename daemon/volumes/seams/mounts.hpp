// The seam to mount points. All calls except mount_table() run in a worker and end by their deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/publish.hpp"
#include "daemon/volumes/seams/own_mount.hpp"
#include "daemon/volumes/seams/reservations.hpp"
#include "daemon/volumes/seams/store.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

struct Mounted {
  Change change = Change::Done;
  std::string users;      // processes with open files on the dead mount that was replaced; empty means none
  std::string warning{};  // a sentence; empty means none
};

// A mount to be mounted otherwise. Its worker compares the rest right before that: it may have waited in the
// kernel since the daemon looked, and another host may have written meanwhile.
struct Remount {
  OwnMount mount;
  std::string device, uuid;                  // of the file system
  std::uint64_t stamp = 0;                   // of a reader's superblock; 0 means a writer
  std::optional<NamespaceOf> reservation{};  // to be held by this host
  bool alone = false;                        // multi-mount protection is the only fence
};

// The interface for one volume.
class Mounts {
 public:
  virtual ~Mounts() = default;

  // Pins `identity` (an empty uuid pins nothing) once the mount has succeeded.
  virtual asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request,
                                                 FilesystemIdentity identity) = 0;
  // Prevents writes to the mount point while nothing is mounted there: mounts/guard.hpp. `is_in_use`: the
  // volume is mounted there.
  virtual asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) = 0;
  // Refused if another mount is there by now. Returns the processes with open files on a detached mount, as
  // text; empty means none.
  virtual asio::awaitable<Result<std::string>> unmount(OwnMount mount, mounts::Unmount how) = 0;
  // The processes with open files on the mount, as text; empty means none. Reads /proc, never the mount.
  virtual asio::awaitable<Result<std::string>> users(std::filesystem::path target) = 0;
  // See mounts/publish.hpp. ReadOnly is pinned, and lasts until make_writable.
  virtual asio::awaitable<Result<mounts::Closed>> publish(Remount mount, mounts::AfterPublish then) = 0;
  virtual asio::awaitable<Result<>> make_writable(Remount mount) = 0;
  // All mounts of this host; valid until the next call of any kind.
  virtual const Result<std::vector<mounts::Mount>>& mount_table() = 0;
};

}  // namespace spark::volumes
