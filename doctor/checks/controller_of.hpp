#pragma once

#include <string>

namespace spark::doctor {

// The controller of the drive that holds a block device, by sysfs; empty: it is no NVMe drive of this host.
// `device` is "259:2". A volume of LVM or RAID is followed to its first drive.
std::string controller_of(const std::string& sysfs, const std::string& device);

}  // namespace spark::doctor
