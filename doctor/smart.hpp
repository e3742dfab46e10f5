// An NVMe drive's own word on its health.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::doctor {

struct DriveHealth {
  std::vector<std::string> warnings;  // of the drive itself, in words
  unsigned percent_used = 0;          // of the writes that it was made for; may pass 100
};

// The 512 bytes of the SMART / health log page. Invalid: too short.
Result<DriveHealth> parse_health(std::string_view page);

// Asks the drive behind a controller's device ("/dev/nvme0"). May block as long as the drive does.
Result<DriveHealth> read_health(const std::string& device);

// The controller of the drive that holds a block device, by sysfs; empty: it is no NVMe drive of this host.
// `device` is "259:2". A volume of LVM or RAID is followed to its first drive.
std::string controller_of(const std::string& sysfs, const std::string& device);

}  // namespace spark::doctor
