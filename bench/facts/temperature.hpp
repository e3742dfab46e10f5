// How hot a local drive is, and from where on it slows itself down.
#pragma once

#include <optional>

#include "base/file.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// From the kernel's sensors (hwmon: NVMe drives, and others with `drivetemp`); the hottest of several drives.
// No value for a remote path and where there is no sensor.
std::optional<DriveTemperature> drive_temperature(const SystemRoot& root, const StorageFacts& storage);

}  // namespace spark::bench
