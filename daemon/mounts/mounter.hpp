// What is to be mounted or unmounted: libmount_mounter.hpp does it, in a worker.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace spark::mounts {

// A mount that has lost its device. It stays until its successor is mounted, so that no program reaches the
// folder below it.
struct DeadMount {
  dev_t device = 0;
  bool detach = false;  // even if in use; otherwise it is unmounted, which fails while it is in use
  int id = 0;           // the kernel's number of the mount; 0 means any mount of the device
};

struct MountRequest {
  std::string source;                // "/dev/nvme3n1" or "host:/path"
  std::filesystem::path target;      // created if missing; refused if it is not a folder
  std::string type;                  // "ext4", "xfs", "nfs"
  bool read_only = true;             // also sets the block device read-only, and adds noload / norecovery
  std::vector<std::string> options;  // user options; _netdev is always added
  bool keeps_journal = false;  // a read-only mount that a remount will make writable: no noload / norecovery
  std::string claim_as{};      // for writing, without a reservation: this host's name (mmp_claim.hpp)
  std::string uuid{};          // required file system; empty means any
  std::optional<DeadMount> replaces{};  // an existing mount, removed first
  std::uint32_t claim_s = 0;            // how long multi-mount protection delays the mount
  bool may_hide_files = false;          // otherwise a target that is not empty is refused
};

// Plain: refused while it is in use. Detach: lazily, even if it is in use; for a dead mount. Force: for an
// NFS mount whose server is gone; requests that wait for the server fail, and the mount is detached if it
// stays.
enum class Unmount { Plain, Detach, Force };

}  // namespace spark::mounts
