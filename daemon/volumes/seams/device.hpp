// The seam to a volume's device and to the file system mounted from it. Calls that access the device run in a
// worker, and end by their deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/volumes/seams/own_mount.hpp"
#include "daemon/volumes/seams/reservations.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

struct ProbeRequest {
  std::filesystem::path target;
  std::string device;                             // empty for NFS
  std::optional<NamespaceOf> keep_reservation{};  // for an exclusive volume
};

struct ProbeAnswer {
  mounts::Superblock
      superblock;          // of the device, by a direct read. NFS: only read_us, of a request to the server
  bool shut_down = false;  // NFS: all access to the mount fails, although its server answers
  std::optional<nvmetcp::ReservationState> holding{};  // if it was requested
};

// The interface for one volume.
class Device {
 public:
  virtual ~Device() = default;

  virtual asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) = 0;
  // Whether the device, or the NFS server, answers. Must not be called while the link is down: it would hang.
  virtual asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) = 0;
  // The kernel's state of the mounted file system; its worker may wait for other programs' changes. TimedOut,
  // or Unavailable while such a worker is left: in both cases the file system is alive. Refused if another
  // mount is there by now.
  virtual asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                                      mounts::MountNumbers seen) = 0;
  // Writes all unwritten data of the mounted file system to its device; may take hours, and has no deadline.
  virtual asio::awaitable<Result<>> flush(OwnMount mount) = 0;
  // Ensures that the mounted file system writes nothing more to `device`, not even unflushed data, also below
  // other mounts. An error if the mount is gone.
  virtual asio::awaitable<Result<>> stop_writing(OwnMount mount, std::string device) = 0;

  // These never block.
  // Number of completed requests to the device over these controllers, from any sender; no value if unknown.
  virtual std::optional<std::uint64_t> completed_io(const std::string& device,
                                                    const std::vector<std::string>& controllers) = 0;
  // An abandoned worker that accessed this volume's device still waits in the kernel.
  virtual bool has_stuck_worker() = 0;
};

}  // namespace spark::volumes
