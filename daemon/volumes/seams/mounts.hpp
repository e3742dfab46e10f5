// The seam to mount points. All but the mount table runs in a worker and ends by its deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/publish.hpp"
#include "daemon/mounts/table.hpp"
#include "daemon/volumes/seams/store.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

struct Unmounted {
  Change change = Change::Done;
  std::string users;  // who still has files of a detached mount open; empty: nobody
};

struct Mounted {
  Change change = Change::Done;
  std::string users;  // the same, of the dead mount that it replaced
};

// Of one volume.
class Mounts {
 public:
  virtual ~Mounts() = default;

  // Pins `identity` (empty uuid: nothing to pin) once the mount has succeeded.
  virtual asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request,
                                                 FilesystemIdentity identity) = 0;
  // No process can write to the mount point while nothing is mounted there: mounts/guard.hpp. `is_in_use`:
  // what is mounted there is the volume.
  virtual asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) = 0;
  virtual asio::awaitable<Result<Unmounted>> unmount(std::filesystem::path target, bool detach) = 0;
  // Who has files of the mount open, in words; empty: nobody. Asks /proc, never the mount.
  virtual asio::awaitable<Result<std::string>> users(std::filesystem::path target) = 0;
  // See mounts/publish.hpp. ReadOnly is pinned, and lasts until make_writable; of no device, where nothing is
  // mounted, that ends the pin alone. `alone`: without a reservation.
  virtual asio::awaitable<Result<mounts::Closed>> publish(std::filesystem::path target, std::string device,
                                                          mounts::AfterPublish then, bool alone) = 0;
  virtual asio::awaitable<Result<>> make_writable(std::filesystem::path target, std::string device,
                                                  bool alone) = 0;
  // All that is mounted on this host; valid until the next call of any kind.
  virtual const Result<std::vector<mounts::Mount>>& mount_table() = 0;
};

}  // namespace spark::volumes
