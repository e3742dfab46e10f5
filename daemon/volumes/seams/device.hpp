// The seam to a volume's device and to the file system that is mounted from it. What asks the device runs in
// a worker, and ends by its deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/volumes/seams/reservations.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

struct ProbeRequest {
  std::filesystem::path target;
  std::string device;                             // empty for NFS
  std::optional<NamespaceOf> keep_reservation{};  // an exclusive volume's
};

struct ProbeAnswer {
  double us = 0;           // a direct read of the superblock, or a question to the NFS server
  std::string uuid;        // of the file system on the device
  bool shut_down = false;  // NFS: the mount gives nothing but errors, although its server answers
  bool being_written = false;
  std::uint64_t stamp = 0;  // of the superblock; 0: none
  std::string mmp_node{};   // who has it open for writing, with multi-mount protection
  std::optional<nvmetcp::ReservationState> holding{};  // if it was asked for
};

// As one volume asks it.
class Device {
 public:
  virtual ~Device() = default;

  virtual asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) = 0;
  // The device answers, or the NFS server. Not while the link is down: it would hang.
  virtual asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) = 0;
  // Of the file system in the kernel, whose worker may wait for other programs' changes. TimedOut, or
  // Unavailable as long as such a worker is left: it does, and is alive.
  virtual asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target) = 0;
  // The mounted file system writes nothing more to `device`, not even what it has not flushed.
  virtual asio::awaitable<Result<>> stop_writing(std::filesystem::path target, std::string device) = 0;

  // These never block.
  // How many requests to the device have ended, whoever sent them; no value: not known.
  virtual std::optional<std::uint64_t> completed_io(const std::string& device) = 0;
  // A worker that asked this volume's device was abandoned and still waits in the kernel.
  virtual bool has_stuck_worker() = 0;
};

}  // namespace spark::volumes
