// The owner of a block device, from /sys/dev/block: never opens the device, never blocks.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::nvmetcp {

// The NQN of the subsystem that an NVMe disk or partition belongs to. NotFound: the number belongs to no
// device any more (the kernel keeps the number of a dead disk while a mount holds it). Invalid: a device that
// is not NVMe.
Result<std::string> subsystem_of_device(const SystemRoot& root, dev_t device);

}  // namespace spark::nvmetcp
