// The Mounter of a real host. Needs root. Use it from one thread of a dedicated process: an NFS mount
// temporarily redirects the process's standard error.
#pragma once

#include "daemon/mounts/mounter.hpp"

namespace spark::mounts {

class LibmountMounter final : public Mounter {
 public:
  Result<Change> mount(const MountRequest& request) override;
  Result<Change> unmount(const std::filesystem::path& target, Unmount how) override;
};

}  // namespace spark::mounts
