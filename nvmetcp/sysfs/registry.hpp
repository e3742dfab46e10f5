// Who keeps which controller of this host: /run/nvme/registry/nvmeN/owner, on which libnvme 3, nvme-stas and
// others agree (libnvme/design/REGISTRY.md in linux-nvme/nvme-cli). `nvme disconnect-all` spares what has an
// owner; libnvme before 3 knows nothing of it, so it is written here.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

inline constexpr const char* kOwner = "spark-stage";

// Another program keeps it: it may be used, and is neither changed nor disconnected.
inline bool is_foreign(const Controller& controller) {
  return !controller.owner.empty() && controller.owner != kOwner;
}

// Empty: nobody says that it is theirs.
std::string owner_of(const SystemRoot& root, const std::string& controller);

// Says that it is ours, all at once. What stands there is taken for an earlier controller's of this name: ask
// owner_of first, unless the kernel has just made it.
Result<> claim(const SystemRoot& root, const std::string& controller);

// Our entries of controllers that are gone, whoever took them away: their names will be others'.
void forget_gone(const SystemRoot& root);

// It is gone. The udev rule that does this comes with libnvme 3. An entry of somebody else's stays.
void disown(const SystemRoot& root, const std::string& controller);

}  // namespace spark::nvmetcp
