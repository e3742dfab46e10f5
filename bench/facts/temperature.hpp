// The temperature of a local drive, and its throttling threshold.
#pragma once

#include <optional>

#include "base/file.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// From the kernel's sensors (hwmon: NVMe drives, and other drives with `drivetemp`); the hottest of several
// drives. No value for a remote path or if there is no sensor.
std::optional<DriveTemperature> drive_temperature(const SystemRoot& root, const StorageFacts& storage);

}  // namespace spark::bench
