// The owner of each controller of this host: /run/nvme/registry/nvmeN/owner, a convention of libnvme 3,
// nvme-stas and others (libnvme/design/REGISTRY.md in linux-nvme/nvme-cli). `nvme disconnect-all` skips
// controllers with an owner. libnvme before 3 does not write the file, so it is written here.
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

// Empty: no program owns it.
std::string owner_of(const SystemRoot& root, const std::string& controller);

// Registers it as ours, atomically. An existing entry is treated as an earlier controller's of this name:
// call owner_of first, unless the kernel has just made the controller.
Result<> claim(const SystemRoot& root, const std::string& controller);

// The kernel has just made it: an entry of this name, whosever, is of an earlier controller.
void forget_earlier(const SystemRoot& root, const std::string& controller);

// Removes our entries of controllers that are gone: their names will be reused.
void forget_gone(const SystemRoot& root);

// It is gone. The udev rule that does this comes with libnvme 3. An entry of another program stays.
void disown(const SystemRoot& root, const std::string& controller);

}  // namespace spark::nvmetcp
