// What a volume can do and see. The seam between thinking (volume.cpp) and touching (workers): a fake fabric
// in unit tests, workers and sysfs in the daemon.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/superblock.hpp"
#include "daemon/mounts/table.hpp"
#include "nvmetcp/gateway.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

// The file system that a volume has to be: given in the config, or pinned at its first mount.
struct FilesystemIdentity {
  std::string type, uuid;  // empty: not known yet
};

class VolumeActions {
 public:
  virtual ~VolumeActions() = default;

  // These touch the fabric, devices and mount points; each runs in a worker and ends by its deadline.
  virtual asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                                  std::string interface) = 0;
  virtual asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                               nvmetcp::ConnectOptions options) = 0;
  virtual asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem) = 0;
  virtual asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) = 0;
  // Pins `identity` (empty uuid: nothing to pin) once the mount has succeeded.
  virtual asio::awaitable<Result<Change>> mount(mounts::MountRequest request,
                                                FilesystemIdentity identity) = 0;
  virtual asio::awaitable<Result<Change>> unmount(std::filesystem::path target, bool detach) = 0;
  // The mounted file system answers.
  virtual asio::awaitable<Result<>> probe(std::filesystem::path target) = 0;

  // These never block.
  virtual Result<nvmetcp::HostIdentity> host_identity() = 0;
  virtual Result<std::vector<nvmetcp::Controller>> controllers() = 0;
  virtual Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) = 0;
  virtual Result<std::string> subsystem_of_device(dev_t device) = 0;
  virtual Result<std::vector<mounts::Mount>> mount_table() = 0;
  virtual std::optional<FilesystemIdentity> pinned_identity() = 0;
  // Another volume of ours that is up uses the same subsystem: its controllers stay.
  virtual bool subsystem_shared() = 0;
};

}  // namespace spark::volumes
