// The Mounter of a real host. Needs root. For one thread of a process of its own: an NFS mount borrows the
// process's standard error for its duration.
#pragma once

#include "daemon/mounts/mounter.hpp"

namespace spark::mounts {

class LibmountMounter final : public Mounter {
 public:
  Result<Change> mount(const MountRequest& request) override;
  Result<Change> unmount(const std::filesystem::path& target, bool detach) override;
};

}  // namespace spark::mounts
