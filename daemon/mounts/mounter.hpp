// The seam to mount(2), by libmount. Every call may block for ever: workers only.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::mounts {

// A mount whose device is gone. It stays until its successor is mounted, so that no program reaches the
// folder below it.
struct DeadMount {
  dev_t device = 0;
  bool detach = false;  // although it is in use; otherwise it is unmounted, which its users prevent
};

struct MountRequest {
  std::string source;                // "/dev/nvme3n1" or "host:/path"
  std::filesystem::path target;      // made if missing; refused if it is not a folder
  std::string type;                  // "ext4", "xfs", "nfs"
  bool read_only = true;             // also sets the block device read-only, and adds noload / norecovery
  std::vector<std::string> options;  // the user's; _netdev is always added
  bool keeps_journal = false;  // of a read-only mount that a remount makes writable: no noload / norecovery
  std::string claim_as{};      // for writing, without a reservation: this host's name (mmp_claim.hpp)
  std::string uuid{};          // of the file system that it has to be; empty: whichever is there
  std::optional<DeadMount> replaces{};  // is there, and goes first
  bool may_hide_files = false;          // else a target that is not empty is refused
};

class Mounter {
 public:
  virtual ~Mounter() = default;
  // AlreadyThere: the same source is mounted there already, as writable as asked for. Unavailable: the
  // device has another file system by now than it was asked for. Refused: the mount
  // point is not a folder, holds files or lies behind a symbolic link, something else is mounted there, the
  // device is mounted somewhere else the other way, or another host has it open (MMP, which takes about twice
  // its interval to say so). Unsupported: the kernel or a helper program lacks the type. NFS: Unavailable,
  // TimedOut, Denied, NotFound as the server has it. Done is checked in the mount table first.
  virtual Result<Change> mount(const MountRequest& request) = 0;
  // AlreadyThere: nothing is mounted there. Refused: in use, with the users' names and pids in the error.
  // `detach` (lazy) is for dead mounts only.
  virtual Result<Change> unmount(const std::filesystem::path& target, bool detach) = 0;
};

}  // namespace spark::mounts
