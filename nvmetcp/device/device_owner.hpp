// The owner of a block device, from /sys/dev/block: never opens the device, never blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::nvmetcp {

struct DeviceOwner {
  std::string subsystem;   // its NQN
  std::uint32_t nsid = 0;  // 0: unknown
  bool is_partition = false;
};

// The namespace that an NVMe disk or partition belongs to. NotFound: the number belongs to no device any more
// (the kernel keeps the number of a dead disk while a mount holds it). Invalid: a device that is not NVMe.
Result<DeviceOwner> owner_of_device(const SystemRoot& root, dev_t device);

}  // namespace spark::nvmetcp
