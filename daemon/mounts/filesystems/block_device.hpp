// Operations on a block device, independent of its file system.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace spark::mounts {

// NotFound if there is no such device.
Result<dev_t> device_number_of(const std::string& device);

// Refuses every write to the device on this host (BLKROSET), or allows writes again if the target does.
Result<> set_device_read_only(const std::string& device, bool read_only);

}  // namespace spark::mounts
